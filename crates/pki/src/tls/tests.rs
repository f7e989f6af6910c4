use super::*;
use crate::{Authority, JoinToken, Leaf};
use api::clock::{Clock, SystemClock};
use jiff::SignedDuration;
use rustls::{ClientConnection, ServerConnection};
use tempfile::TempDir;

struct World {
    _folder: TempDir,
    authority: Authority,
    credentials: Credentials,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::open(folder.path(), Arc::new(SystemClock)).unwrap();
    let credentials = authority
        .server(folder.path(), &["localhost".into(), "127.0.0.1".into()])
        .unwrap();
    World {
        _folder: folder,
        authority,
        credentials,
    }
}

impl World {
    fn server(&self) -> Arc<ServerConfig> {
        server(
            &self.credentials,
            self.authority.certificate(),
            &["h2", "http/1.1"],
        )
        .unwrap()
    }
}

/// A whole handshake in memory; what the server knows of its peer, or what either side complained of.
fn handshake(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: &'static str,
) -> Result<Option<Leaf>, rustls::Error> {
    let mut client = ClientConnection::new(client, ServerName::try_from(name).unwrap())?;
    let mut server = ServerConnection::new(server)?;
    while client.is_handshaking() || server.is_handshaking() || client.wants_write() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    let peer = server.peer_certificates().and_then(|chain| chain.first());
    Ok(peer.map(|der| Leaf::parse(der).unwrap()))
}

#[test]
fn a_user_is_known_by_certificate_and_a_stranger_is_served_as_such() {
    let world = world();
    let groups = ["system:masters".to_owned(), "operators".to_owned()];
    let user = world
        .authority
        .user("admin", &groups, SignedDuration::from_hours(1))
        .unwrap();
    let config = client(world.authority.certificate(), Some(&user), &["http/1.1"]).unwrap();
    let peer = handshake(config, world.server(), "127.0.0.1").unwrap().unwrap();
    assert_eq!(
        (peer.common_name.as_str(), peer.organizations.len()),
        ("admin", 2)
    );
    assert!(peer.identity().is_master());

    let config = client(world.authority.certificate(), None, &[]).unwrap();
    assert_eq!(handshake(config, world.server(), "localhost").unwrap(), None);
}

#[test]
fn certificates_of_another_authority_are_refused_on_both_sides() {
    let (ours, other) = (world(), world());
    let foreign = other
        .authority
        .user("admin", &["system:masters".into()], SignedDuration::from_hours(1))
        .unwrap();
    let config = client(ours.authority.certificate(), Some(&foreign), &[]).unwrap();
    assert!(handshake(config, ours.server(), "localhost").is_err());
    let config = client(other.authority.certificate(), None, &[]).unwrap();
    assert!(handshake(config, ours.server(), "localhost").is_err());
}

#[test]
fn an_expired_certificate_is_refused() {
    let world = world();
    let user = world
        .authority
        .user("late", &[], SignedDuration::from_hours(-1))
        .unwrap();
    assert!(user.leaf().unwrap().not_after < SystemClock.now());
    let config = client(world.authority.certificate(), Some(&user), &[]).unwrap();
    assert!(handshake(config, world.server(), "localhost").is_err());
}

#[test]
fn a_users_certificate_cannot_serve_and_a_servers_cannot_name_a_user() {
    let world = world();
    let user = world
        .authority
        .user("localhost", &[], SignedDuration::from_hours(1))
        .unwrap();
    let posing = server(&user, world.authority.certificate(), &[]).unwrap();
    let config = client(world.authority.certificate(), None, &[]).unwrap();
    assert!(handshake(config, posing, "localhost").is_err());
    let config = client(world.authority.certificate(), Some(&world.credentials), &[]).unwrap();
    assert!(handshake(config, world.server(), "localhost").is_err());
}

#[test]
fn a_new_agent_trusts_exactly_the_authority_of_its_token() {
    let world = world();
    let token = JoinToken::generate(&world.authority.hash()).unwrap();
    let (config, pinned) = first_contact(&token.authority, &[]).unwrap();
    handshake(config, world.server(), "127.0.0.1").unwrap();
    assert_eq!(pinned.authority(), Some(world.authority.certificate()));

    let (config, pinned) = first_contact(&token.authority, &[]).unwrap();
    assert!(handshake(config, self::world().server(), "127.0.0.1").is_err());
    assert_eq!(pinned.authority(), None);

    // The right authority does not make a wrong name right.
    let (config, _) = first_contact(&token.authority, &[]).unwrap();
    assert!(handshake(config, world.server(), "elsewhere.example").is_err());
}

#[test]
fn a_server_that_only_shows_the_right_authority_is_refused() {
    let (real, liar) = (world(), world());
    let chain = format!(
        "{}\n{}",
        crate::authority::pem_text(&liar.credentials.chain()[0]),
        real.authority.certificate_pem()
    );
    let forged = Credentials::from_pem(&chain, liar.credentials.key_pem()).unwrap();
    let posing = server(&forged, real.authority.certificate(), &[]).unwrap();
    let (config, pinned) = first_contact(&real.authority.hash(), &[]).unwrap();
    assert!(handshake(config, posing, "localhost").is_err());
    assert_eq!(pinned.authority(), None);
}
