//! Snapshots kept for lists that are read in pages.
//!
//! Every page of a list shows the same revision. The first page pins the snapshot; a continue token names the pin and
//! where to go on. Pins are few and short-lived, as each keeps a whole kind's past in memory; a token whose pin is gone
//! (too old, too many others, another server) gets 410 Expired and the client lists again.

use super::Snapshot;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use machinery::status::Status;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Pins kept at a time.
const MOST: usize = 64;
/// How long a pin is kept after its last use.
const KEPT: Duration = Duration::from_secs(75);

/// A continue token: which pin, and the key after which to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The server's own number: a token of another server, or of this one before a restart, means nothing.
    server: u64,
    id: u64,
    /// The last namespace shown.
    pub namespace: String,
    /// The last name shown in it.
    pub name: String,
}

impl Pin {
    /// The text of the token.
    pub fn token(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a token.
    pub fn parse(token: &str) -> Result<Self, Status> {
        BASE64_URL_SAFE_NO_PAD
            .decode(token)
            .ok()
            .and_then(|json| serde_json::from_slice(&json).ok())
            .ok_or_else(|| {
                Status::bad_request(
                    "continue key is not valid: it is no token of this server; list from the start",
                )
            })
    }

    /// The same pin at another place.
    pub fn at(&self, namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            ..self.clone()
        }
    }
}

/// The pinned snapshots.
#[derive(Debug)]
pub struct Pins {
    server: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    /// The least recently used first.
    pins: VecDeque<(u64, Instant, Snapshot)>,
}

impl Held {
    fn expire(&mut self, now: Instant) {
        while self.pins.len() > MOST
            || self
                .pins
                .front()
                .is_some_and(|(_, used, _)| now.saturating_duration_since(*used) > KEPT)
        {
            self.pins.pop_front();
        }
    }
}

impl Pins {
    /// No pins; `server` tells this server's tokens from those of others.
    pub fn new(server: u64) -> Self {
        Self {
            server,
            held: Mutex::default(),
        }
    }

    /// Keeps a snapshot.
    pub fn pin(&self, snapshot: Snapshot, now: Instant) -> Pin {
        let mut held = self.held.lock();
        held.next += 1;
        let id = held.next;
        held.pins.push_back((id, now, snapshot));
        held.expire(now);
        Pin {
            server: self.server,
            id,
            namespace: String::new(),
            name: String::new(),
        }
    }

    /// The snapshot of a token, 410 if it is gone.
    pub fn find(&self, pin: &Pin, now: Instant) -> Result<Snapshot, Status> {
        let mut held = self.held.lock();
        held.expire(now);
        let found = (pin.server == self.server)
            .then(|| held.pins.iter().position(|(id, ..)| *id == pin.id))
            .flatten()
            .and_then(|at| held.pins.remove(at));
        let Some((id, _, snapshot)) = found else {
            return Err(Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
            ));
        };
        held.pins.push_back((id, now, snapshot.clone()));
        Ok(snapshot)
    }

    /// Drops pins nobody used for long; called from time to time so that an idle server holds none.
    pub fn sweep(&self, now: Instant) {
        self.held.lock().expire(now);
    }
}
