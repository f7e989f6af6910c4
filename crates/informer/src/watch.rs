//! The watch itself: follow, and when it breaks follow again from where it was.

use crate::{
    Options, Watched,
    cache::{Cache, Keyed, key},
    decode::{self, Event},
};
use futures::{AsyncBufReadExt, io::AsyncBufRead};
use kube::{
    Client,
    api::WatchParams,
    core::{Request, Status},
};
use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};

/// How long the server lets one watch last.
const SERVER_LIMIT: u32 = 290;
/// After this long without a line the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(300);
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Why a watch ended.
#[derive(Debug, thiserror::Error)]
enum End {
    /// The server ended it in order; go on from the last version.
    #[error("the watch ran its time")]
    Timeout,
    /// The last version is too old, or unknown to this server; list anew.
    #[error("the version is too old: {0}")]
    Expired(Box<Status>),
    /// The request was refused or the connection broke; go on from the last version.
    #[error("{0}")]
    Request(#[from] kube::Error),
    /// The server reported an error within the stream; go on from the last version.
    #[error("{0}")]
    Reported(Box<Status>),
    /// What came was no watch event; go on from the last version.
    #[error("not a watch event: {0}")]
    Garbled(#[from] serde_json::Error),
    /// The stream broke; go on from the last version.
    #[error("{0}")]
    Broken(#[from] std::io::Error),
    /// Nothing came for too long; go on from the last version.
    #[error("nothing was heard for {} s", SILENCE.as_secs())]
    Silent,
}

/// Where a watch stands.
#[derive(Default)]
struct Place {
    /// Everything up to here was seen; `None` before the first full list.
    version: Option<String>,
    /// What the list under way has held so far.
    listed: HashSet<Keyed>,
    /// Whether anything came since the last failure.
    heard: bool,
}

pub(crate) async fn run<K: Watched>(client: Client, options: Options<K>, cache: Arc<Cache<K>>) {
    let mut place = Place::default();
    let mut wait = FIRST_WAIT;
    loop {
        let Err(end) = follow(&client, &options, &cache, &mut place).await;
        if std::mem::take(&mut place.heard) {
            wait = FIRST_WAIT;
        }
        match end {
            End::Timeout => continue,
            End::Expired(status) => {
                tracing::info!(kind = %K::kind(&()), %status, "listing anew");
                place.version = None;
            }
            other => tracing::warn!(kind = %K::kind(&()), error = %other, "watch broke off"),
        }
        cache.interrupted();
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

async fn follow<K: Watched>(
    client: &Client,
    options: &Options<K>,
    cache: &Cache<K>,
    place: &mut Place,
) -> Result<std::convert::Infallible, End> {
    place.listed.clear();
    let params = WatchParams {
        field_selector: options.fields.clone(),
        timeout: Some(SERVER_LIMIT),
        send_initial_events: place.version.is_none(),
        ..Default::default()
    };
    let request = Request::new(&options.path)
        .watch(&params, place.version.as_deref().unwrap_or_default())
        .map_err(kube::Error::BuildRequest)?;
    let stream = client.request_stream(request).await.map_err(refused)?;
    let mut stream = pin!(stream);
    let mut line = Vec::new();
    loop {
        read_line(&mut stream, &mut line).await?;
        take(decode::event(&line)?, options, cache, place)?;
        place.heard = true;
    }
}

fn refused(error: kube::Error) -> End {
    match error {
        kube::Error::Api(status) if status.code == 410 => End::Expired(status),
        other => End::Request(other),
    }
}

async fn read_line(stream: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Result<(), End> {
    line.clear();
    let read = tokio::time::timeout(SILENCE, stream.read_until(b'\n', line)).await;
    match read.map_err(|_| End::Silent)?? {
        // a line without its end was cut off; it comes again
        0 => Err(End::Timeout),
        _ if line.last() != Some(&b'\n') => Err(End::Timeout),
        _ => Ok(()),
    }
}

fn take<K: Watched>(
    event: Event<K>,
    options: &Options<K>,
    cache: &Cache<K>,
    place: &mut Place,
) -> Result<(), End> {
    let version = match event {
        Event::Applied(mut object) => {
            let version = object.meta().resource_version.clone().unwrap_or_default();
            (options.trim)(&mut object);
            let key = cache.apply(object);
            if place.version.is_none() {
                place.listed.insert(key);
            }
            version
        }
        Event::Deleted(meta) => {
            cache.delete(&key(&meta.namespace, &meta.name));
            meta.resource_version
        }
        Event::Unreadable { meta, error } => {
            tracing::error!(kind = %K::kind(&()), namespace = meta.namespace, name = meta.name, %error, "object cannot be read");
            if place.version.is_none() {
                place.listed.insert(key(&meta.namespace, &meta.name));
            }
            meta.resource_version
        }
        Event::Bookmark { version, initial_end } => {
            if initial_end && place.version.is_none() {
                cache.retain(&std::mem::take(&mut place.listed));
                cache.set_synced();
                place.version = Some(version);
                return Ok(());
            }
            version
        }
        Event::Error(status) if status.code == 410 => return Err(End::Expired(status)),
        Event::Error(status) => return Err(End::Reported(status)),
    };
    if place.version.is_some() {
        place.version = Some(version);
    }
    Ok(())
}
