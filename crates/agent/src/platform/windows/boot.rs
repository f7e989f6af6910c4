//! Which boot this is, and the clock that counts suspend.
//!
//! Windows has no id of a boot: times since 1601 move when the clock is set, and what firmware calls the boot entry is the same each
//! time. So the first of us in a boot writes a random id into a key of the registry that Windows forgets when it restarts. After a "fast
//! start" from hibernation services have gone on, and the key is still there: an equal id is the truth.

use std::{io, time::Duration};
use win32::{
    clock,
    registry::{Hive, Key, Life},
};

const KEY: &str = r"SOFTWARE\Prow\Boot";
const VALUE: &str = "Id";

/// How long whoever made the key may take to write into it, before another does.
const PATIENCE: Duration = Duration::from_secs(5);

/// The id of this boot of the host: the same until it restarts. Of this account alone where the machine's registry cannot be written.
pub fn boot_id() -> io::Result<String> {
    let (key, made) =
        Key::create(Hive::Machine, KEY, Life::Boot).or_else(|_| Key::create(Hive::User, KEY, Life::Boot))?;
    id_in(&key, made)
}

/// The id kept in a key. Of several who want it at once exactly one has made the key, and writes; the others wait for that.
fn id_in(key: &Key, made: bool) -> io::Result<String> {
    let begun = clock::since_boot();
    let mut mine = made;
    loop {
        if let Some(id) = key.text(VALUE)? {
            return Ok(id.to_string_lossy().into_owned());
        }
        if mine {
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            key.set_text(VALUE, &format!("{:032x}", u128::from_ne_bytes(random)))?;
        }
        mine = clock::since_boot() - begun > PATIENCE; // it died in between
        std::thread::yield_now();
    }
}

/// Nanoseconds since boot, time spent in suspend included. Every process of this host reads the same clock.
pub fn boot_nanos() -> u64 {
    u64::try_from(clock::since_boot().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_has_one_id() {
        let id = boot_id().unwrap();
        assert_eq!(id.len(), 32);
        assert_eq!(boot_id().unwrap(), id);
        assert!(boot_nanos() > 0);
    }

    #[test]
    fn all_who_want_it_at_once_get_the_same() {
        let path = format!(r"SOFTWARE\Prow\Test{}", std::process::id());
        let ids = std::thread::scope(|scope| {
            let ask = || {
                let (key, made) = Key::create(Hive::User, &path, Life::Boot).unwrap();
                id_in(&key, made).unwrap()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        win32::registry::delete(Hive::User, &path).unwrap();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}
