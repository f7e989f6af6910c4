//! Which boot this is, and the clock that counts suspend.
//!
//! Windows has no id of a boot: times since 1601 move when the clock is set, and what firmware calls the boot entry is the same each
//! time. So the first of us in a boot writes a random id into a key of the registry that Windows forgets when it restarts. After a "fast
//! start" from hibernation services have gone on, and the key is still there: an equal id is the truth.

use std::io;
use win32::{
    clock,
    registry::{Hive, Key, Life},
};

const KEY: &str = r"SOFTWARE\Prow\Boot";
const VALUE: &str = "Id";

/// The id of this boot of the host: the same until it restarts. Of this account alone where the machine's registry cannot be written.
pub fn boot_id() -> io::Result<String> {
    let (key, _) =
        Key::create(Hive::Machine, KEY, Life::Boot).or_else(|_| Key::create(Hive::User, KEY, Life::Boot))?;
    if let Some(id) = key.text(VALUE)? {
        return Ok(id.to_string_lossy().into_owned());
    }
    // Of several who find none, the last to write wins: all read it again until it stays.
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    key.set_text(VALUE, &format!("{:032x}", u128::from_ne_bytes(random)))?;
    std::thread::yield_now();
    let id = key.text(VALUE)?.unwrap_or_default();
    Ok(id.to_string_lossy().into_owned())
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
}
