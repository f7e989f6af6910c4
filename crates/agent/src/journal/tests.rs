use super::*;
use api::clock::ManualClock;
use proptest::prelude::*;

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()))
}

fn claim(nonce: &str) -> AgentRecord {
    AgentRecord::ClaimSent {
        nonce: nonce.into(),
        sent_at: 7,
    }
}

fn written(path: &Path, nonces: &[&str]) -> Vec<u8> {
    let (mut writer, _) = Writer::open(path, clock()).unwrap();
    for nonce in nonces {
        writer.append(&claim(nonce)).unwrap();
    }
    std::fs::read(path).unwrap()
}

fn records(entries: Vec<Entry<AgentRecord>>) -> Vec<AgentRecord> {
    entries.into_iter().map(|e| e.record).collect()
}

#[test]
fn a_journal_gives_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    written(&path, &["a", "line\nbreak"]);
    assert_eq!(records(read(&path).unwrap()), [claim("a"), claim("line\nbreak")]);
    assert_eq!(records(read(&folder.path().join("none")).unwrap()), []);
}

#[test]
fn a_torn_tail_is_cut_wherever_it_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let one = written(&path, &["a"]).len();
    let all = written(&path, &["b"]);
    for cut in one..all.len() {
        std::fs::write(&path, &all[..cut]).unwrap();
        let (mut writer, found) = Writer::open(&path, clock()).unwrap();
        assert_eq!(records(found), [claim("a")], "cut at {cut}");
        writer.append(&claim("c")).unwrap();
        assert_eq!(
            records(read(&path).unwrap()),
            [claim("a"), claim("c")],
            "cut at {cut}"
        );
    }
}

#[test]
fn damage_in_the_middle_is_not_taken_for_a_torn_tail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let mut bytes = written(&path, &["a", "b", "c"]);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(
        Writer::<AgentRecord>::open(&path, clock()),
        Err(Error::Damaged { .. })
    ));
}

#[test]
fn a_follower_sees_each_record_once_and_no_half_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let bytes = written(&path, &["a", "b"]);
    let mut tail = Tail::new(&path);
    let mut seen = Vec::new();
    for end in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..end]).unwrap();
        seen.extend(records(tail.read().unwrap()));
    }
    assert_eq!(seen, [claim("a"), claim("b")]);
}

#[test]
fn a_record_of_a_newer_version_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let json = br#"{"v":9,"at":"2026-01-02T03:04:05.000000Z","record":"invented"}"#;
    let mut bytes = format!("{:08x} {:08x} ", json.len(), crc32fast::hash(json)).into_bytes();
    bytes.extend_from_slice(json);
    bytes.push(b'\n');
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(records(read(&path).unwrap()), [AgentRecord::Other]);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse::<AgentRecord>(Path::new("x"), &bytes, 0);
    }
}
