//! All controllers together.

use crate::{
    context::{Context, Options},
    counts, disruption, events, gc, job, namespace, node, tokens, ttl,
};
use api::clock::Clock;
use informer::Shared;
use kube::Client;
use std::{future::Future, sync::Arc};

/// Runs all controllers until `shutdown`. What is under way then is dropped: each write stands for itself, and the next run takes up
/// what is left.
pub async fn run(
    client: Client,
    shared: Shared,
    options: Options,
    clock: Arc<dyn Clock>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (recorder, recording) = events::recorder(client.clone(), clock.clone());
    let context = Context {
        client,
        shared,
        options: Arc::new(options),
        clock,
        events: recorder,
    };
    let work = async {
        context.shared.synced().await;
        tokio::join!(
            recording,
            job::run(&context),
            node::run(&context),
            disruption::run(&context),
            ttl::run(&context),
            gc::run(&context),
            namespace::run(&context),
            counts::run(&context),
            events::expire(&context),
            tokens::run(&context),
        );
    };
    tokio::select! {
        () = shutdown => {}
        () = work => {}
    }
}
