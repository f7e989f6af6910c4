//! Enrolment tokens that are of no use any more go: used up ones after an hour, in which a host whose answer was lost may still
//! fetch its certificate, and ended ones an hour after their end, in which `prow node token list` still tells why a host is refused.

use crate::{
    context::Context,
    error::Error,
    keyed::{self, Outcome},
};
use api::enrolment::{EXPIRES, NAMESPACE, TYPE, USED_AT};
use futures::StreamExt;
use informer::{Informer, Options};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};
use std::time::Duration;

const KEPT: SignedDuration = SignedDuration::from_hours(1);

pub(crate) async fn run(context: &Context) {
    let tokens = Options::<Secret>::namespaced(NAMESPACE).fields(format!("type={TYPE}"));
    let tokens = Informer::start(context.client.clone(), tokens);
    let feed = keyed::feed(tokens.subscribe(), |change| {
        let name = change.object().metadata.name.clone();
        name.map(|name| (name, Duration::ZERO)).into_iter().collect()
    });
    let api: Api<Secret> = Api::namespaced(context.client.clone(), NAMESPACE);
    keyed::work("enrolment tokens", feed.boxed(), 1, |name| {
        collect(context, &api, name)
    })
    .await;
}

async fn collect(context: &Context, api: &Api<Secret>, name: String) -> Outcome {
    let Some(token) = api.get_opt(&name).await? else {
        return Ok(None);
    };
    let Some(end) = end(&token) else { return Ok(None) };
    if end > context.now() {
        return Ok(Some(context.until(end)));
    }
    let only_this = DeleteParams::default().preconditions(Preconditions {
        uid: token.metadata.uid,
        resource_version: token.metadata.resource_version,
    });
    match api.delete(&name, &only_this).await.map_err(Error::from) {
        Ok(_) | Err(Error::Gone) => Ok(None),
        Err(error) => Err(error),
    }
}

/// When a token may go; never for one that has no end and was not used.
fn end(token: &Secret) -> Option<Timestamp> {
    let time = |key: &str| {
        let bytes = token.data.as_ref()?.get(key)?;
        std::str::from_utf8(&bytes.0)
            .ok()?
            .trim()
            .parse::<Timestamp>()
            .ok()
    };
    let last = [time(EXPIRES), time(USED_AT)].into_iter().flatten().min()?;
    Some(last.saturating_add(KEPT).unwrap_or(Timestamp::MAX))
}
