use super::*;
use crate::{Leaf, Request};
use api::clock::ManualClock;
use tempfile::TempDir;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn clock() -> ManualClock {
    ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap())
}

fn open(folder: &TempDir, clock: &ManualClock) -> Authority {
    Authority::open(folder.path(), Arc::new(clock.clone())).unwrap()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|n| (*n).to_owned()).collect()
}

#[test]
fn the_authority_of_the_first_start_is_the_one_of_all_later_starts() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let first = open(&folder, &clock).hash();
    assert_eq!(open(&folder, &clock).hash(), first);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(open(&other, &clock).hash(), first);
}

#[cfg(unix)]
#[test]
fn private_keys_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let authority = open(&folder, &clock);
    authority.server(folder.path(), &names(&["localhost"])).unwrap();
    for file in [KEY_FILE, SERVER_FILE] {
        let mode = std::fs::metadata(folder.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_crash_between_key_and_certificate_is_made_good() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    open(&folder, &clock);
    std::fs::remove_file(folder.path().join(CERTIFICATE_FILE)).unwrap();
    let again = open(&folder, &clock);
    assert_eq!(open(&folder, &clock).hash(), again.hash());
}

#[test]
fn a_lost_or_foreign_key_is_named_and_nothing_is_overwritten() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let hash = open(&folder, &clock).hash();
    let key = folder.path().join(KEY_FILE);
    let kept = std::fs::read(&key).unwrap();

    std::fs::remove_file(&key).unwrap();
    let error = Authority::open(folder.path(), Arc::new(clock.clone()))
        .err()
        .unwrap();
    assert!(error.to_string().contains("ca.key"), "{error}");

    std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let error = Authority::open(folder.path(), Arc::new(clock.clone()))
        .err()
        .unwrap();
    assert!(error.to_string().contains("not the key of ca.crt"), "{error}");

    std::fs::write(&key, kept).unwrap();
    assert_eq!(open(&folder, &clock).hash(), hash);
}

#[test]
fn the_servers_certificate_is_kept_until_it_ages_or_the_names_change() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let authority = open(&folder, &clock);
    let serve = |list: &[&str]| {
        let made = authority.server(folder.path(), &names(list)).unwrap();
        made.chain_pem().to_owned()
    };
    let first = serve(&["prow.example", "127.0.0.1"]);
    assert_eq!(serve(&["127.0.0.1", "prow.example"]), first);
    let renamed = serve(&["prow.example", "127.0.0.1", "::1"]);
    assert_ne!(renamed, first);

    clock.advance(DAY * 240);
    assert_eq!(serve(&["prow.example", "127.0.0.1", "::1"]), renamed);
    clock.advance(DAY * 10);
    assert_ne!(serve(&["prow.example", "127.0.0.1", "::1"]), renamed);
}

#[test]
fn a_certificate_of_another_authority_is_replaced() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let other = tempfile::tempdir().unwrap();
    open(&other, &clock)
        .server(folder.path(), &names(&["localhost"]))
        .unwrap();
    let authority = open(&folder, &clock);
    let made = authority.server(folder.path(), &names(&["localhost"])).unwrap();
    assert_eq!(made.chain().last(), Some(authority.certificate()));
}

#[test]
fn a_user_is_in_all_groups_the_certificate_names() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    // Long enough for lengths of two bytes in the encoding.
    let groups: Vec<String> = (0..40).map(|n| format!("team:operators-of-site-{n}")).collect();
    let user = open(&folder, &clock).user("Ünsal", &groups, DAY * 365).unwrap();
    let leaf = user.leaf().unwrap();
    assert_eq!(leaf.common_name, "Ünsal");
    assert_eq!(leaf.organizations, groups);
    assert_eq!(leaf.not_after, clock.now() + DAY * 365);
    let identity = leaf.identity();
    assert_eq!(identity.groups.last().unwrap(), api::identity::AUTHENTICATED);
}

#[test]
fn a_node_gets_its_certificate_for_the_key_it_made() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let request = Request::node("web-1.example").unwrap();
    let read = NodeRequest::parse(&request.csr_pem).unwrap();
    assert_eq!(read.name, "web-1.example");
    let chain = open(&folder, &clock).node(&read).unwrap();
    let credentials = Credentials::from_pem(&chain, &request.key_pem).unwrap();
    let leaf = credentials.leaf().unwrap();
    assert_eq!(leaf.identity().node(), Some("web-1.example"));
    assert!(!leaf.should_renew(clock.now()));
    clock.advance(DAY * 61);
    assert!(leaf.should_renew(clock.now()));
}

#[test]
fn requests_for_more_than_a_nodes_identity_are_refused() {
    let sign = |name: &str, groups: &[&str], sans: &[&str]| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names(sans)).unwrap();
        params.distinguished_name = subject(name, &names(groups));
        params.serialize_request(&key).unwrap().pem().unwrap()
    };
    let refused = |csr: &str, why: &str| {
        let error = NodeRequest::parse(csr).err().expect("refused").to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(&sign("admin", &["system:nodes"], &[]), "common name");
    refused(&sign("system:node:", &["system:nodes"], &[]), "common name");
    refused(&sign("system:node:a", &["system:masters"], &[]), "organizations");
    refused(&sign("system:node:a", &[], &[]), "organizations");
    refused(
        &sign("system:node:a", &["system:nodes"], &["prow.example"]),
        "alternative names",
    );
    refused("nonsense", "not a PEM");
}

#[test]
fn a_request_that_was_tampered_with_is_refused() {
    let csr = Request::node("good").unwrap().csr_pem;
    let parsed = pem::parse(&csr).unwrap();
    let mut bytes = parsed.contents().to_vec();
    let at = bytes.windows(4).position(|w| w == b"good").unwrap();
    bytes[at] = b'f';
    let forged = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", bytes));
    assert!(NodeRequest::parse(&forged).is_err());
}

#[test]
fn credentials_come_back_from_their_file_or_say_what_is_wrong() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let path = folder.path().join("client.pem");
    assert!(Credentials::load(&path).unwrap().is_none());
    let user = open(&folder, &clock).user("ada", &[], DAY).unwrap();
    user.save(&path).unwrap();
    let loaded = Credentials::load(&path).unwrap().unwrap();
    assert_eq!(loaded.chain(), user.chain());
    assert_eq!(Leaf::parse(&loaded.chain()[0]).unwrap().common_name, "ada");
    std::fs::write(&path, "half a fi").unwrap();
    let error = Credentials::load(&path).unwrap_err().to_string();
    assert!(error.contains("client.pem"), "{error}");
}
