use super::*;
use api::clock::ManualClock;

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::new("2026-01-02T03:04:05.5Z".parse().unwrap()))
}

fn log(limit: u64, write: impl FnOnce(&mut Log)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.cri");
    let mut log = Log::open(&path, limit, clock()).unwrap();
    write(&mut log);
    let size = log.finish();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, size);
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        1,
        "spill files are left"
    );
    bytes
}

/// Tag and payload of each line.
fn lines(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let lines = bytes.split_inclusive(|b| *b == b'\n');
    lines
        .map(|line| {
            let mut fields = line[..line.len() - 1].splitn(4, |b| *b == b' ');
            let (time, stream) = (fields.next().unwrap(), fields.next().unwrap());
            assert_eq!(time, b"2026-01-02T03:04:05.500000000Z");
            let tag = [stream, b" ", fields.next().unwrap()].concat();
            (String::from_utf8(tag).unwrap(), fields.next().unwrap().to_vec())
        })
        .collect()
}

fn line(tag: &str, payload: &str) -> (String, Vec<u8>) {
    (tag.to_owned(), payload.as_bytes().to_vec())
}

#[test]
fn lines_of_both_streams_keep_apart() {
    let bytes = log(1 << 20, |log| {
        log.write(Stream::Stdout, b"one\ntw");
        log.write(Stream::Stderr, b"oops\n");
        log.write(Stream::Stdout, b"o\n\nend");
    });
    let expected = [
        line("stdout F", "one"),
        line("stderr F", "oops"),
        line("stdout F", "two"),
        line("stdout F", ""),
        line("stdout F", "end"),
    ];
    assert_eq!(lines(&bytes), expected);
}

#[test]
fn a_prompt_is_seen_before_its_line_ends() {
    let bytes = log(1 << 20, |log| {
        log.write(Stream::Stdout, b"name? ");
        assert!(log.has_unseen());
        log.flush();
        assert!(!log.has_unseen());
        log.write(Stream::Stdout, b"x\n");
    });
    assert_eq!(lines(&bytes), [line("stdout P", "name? "), line("stdout F", "x")]);
}

/// IO-04.
#[test]
fn a_line_of_any_length_is_split_and_what_follows_arrives() {
    for length in [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 5] {
        let long = vec![b'x'; length];
        let bytes = log(1 << 20, |log| {
            for chunk in long.chunks(7000) {
                log.write(Stream::Stdout, chunk);
            }
            log.write(Stream::Stdout, b"\nAFTER\n");
        });
        let lines = lines(&bytes);
        assert!(lines.iter().all(|(_, payload)| payload.len() <= PIECE));
        let (after, pieces) = lines.split_last().unwrap();
        assert_eq!(*after, line("stdout F", "AFTER"));
        assert_eq!(pieces.iter().map(|(_, p)| p.len()).sum::<usize>(), length);
        let (end, begin) = pieces.split_last().unwrap();
        assert_eq!(end.0, "stdout F", "{length}");
        assert!(begin.iter().all(|(tag, _)| tag == "stdout P"), "{length}");
    }
}

/// IO-06.
#[test]
fn bytes_that_are_no_text_are_kept() {
    let odd = b"\xff\x00\xc3\x28\nA\x1b[31m\r\n";
    let bytes = log(1 << 20, |log| log.write(Stream::Stdout, odd));
    let payloads: Vec<_> = lines(&bytes).into_iter().map(|(_, p)| p).collect();
    assert_eq!(payloads, [b"\xff\x00\xc3\x28".to_vec(), b"A\x1b[31m\r".to_vec()]);
}

#[test]
fn over_the_limit_head_and_tail_are_kept_and_the_cut_is_stated() {
    let limit = 64 << 10;
    let bytes = log(limit, |log| {
        for i in 0..20_000 {
            log.write(Stream::Stdout, format!("line {i}\n").as_bytes());
        }
    });
    assert!(bytes.len() as u64 <= limit + 4096, "{}", bytes.len());
    let text: Vec<String> = lines(&bytes)
        .into_iter()
        .map(|(_, p)| String::from_utf8(p).unwrap())
        .collect();
    assert_eq!(text.first().unwrap(), "line 0");
    assert_eq!(text.last().unwrap(), "line 19999");
    let cut: Vec<usize> = (0..text.len())
        .filter(|i| text[*i].contains("were cut here"))
        .collect();
    assert_eq!(cut.len(), 1);
    let number = |i: usize| text[i]["line ".len()..].parse::<usize>().unwrap();
    let run = |range: std::ops::Range<usize>| {
        range
            .clone()
            .zip(range.skip(1))
            .all(|(a, b)| number(a) + 1 == number(b))
    };
    assert!(run(0..cut[0]) && run(cut[0] + 1..text.len()), "gaps elsewhere");
}

#[test]
fn between_half_and_whole_limit_nothing_is_cut() {
    let bytes = log(64 << 10, |log| {
        for i in 0..1000 {
            log.write(Stream::Stdout, format!("{i}\n").as_bytes());
        }
    });
    let numbers: Vec<String> = lines(&bytes)
        .into_iter()
        .map(|(_, p)| String::from_utf8(p).unwrap())
        .collect();
    assert_eq!(numbers, (0..1000).map(|i| i.to_string()).collect::<Vec<_>>());
}

#[test]
fn the_last_lines_are_readable() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::open(&folder.path().join("l"), 1 << 20, clock()).unwrap();
    for i in 0..30 {
        log.write(Stream::Stdout, format!("\x1b[1m{i}\n\n").as_bytes());
    }
    let last: Vec<&str> = log.last_lines().collect();
    assert_eq!(last.len(), 10);
    assert_eq!(last[9], "[1m29");
}
