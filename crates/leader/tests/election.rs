//! Who leads, and what one that no longer does can still do: against the API server in this process, on simulated time.

#![allow(clippy::unwrap_used)]

use api::{clock::Clock, identity::Identity};
use http::{Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
    client::Body,
};
use leader::{BootClock, Fence, Options, Stale, lead};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::Instant,
};

const LEASE: Duration = Duration::from_secs(15);

/// Tokio's simulated time, which can also jump as in a suspend that no timer notices.
#[derive(Clone)]
struct Boot {
    start: Instant,
    jumped: Arc<Mutex<Duration>>,
}

impl Boot {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            jumped: Arc::default(),
        }
    }

    fn jump(&self, by: Duration) {
        *self.jumped.lock().unwrap() += by;
    }
}

impl Clock for Boot {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.start.elapsed()
    }
}

impl BootClock for Boot {
    fn now(&self) -> Duration {
        self.start.elapsed() + *self.jumped.lock().unwrap()
    }
}

/// One API server and those who run for its Lease.
struct World {
    server: apiserver::Server,
    clock: Arc<dyn Clock>,
    /// How many lead at this moment.
    leading: Arc<AtomicUsize>,
}

struct Candidate {
    boot: Boot,
    cut_off: Arc<AtomicBool>,
    started: mpsc::UnboundedReceiver<Fence>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl World {
    async fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Boot::new());
        let options = apiserver::Options {
            clock: clock.clone(),
            ..Default::default()
        };
        let store = Arc::new(store::Memory::new());
        let server = apiserver::Server::start(store, machinery::core_kinds::all(), options);
        Self {
            server: server.await.unwrap(),
            clock,
            leading: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        self.server.client(Identity::part("test"))
    }

    fn run(&self, identity: &str) -> Candidate {
        let (boot, cut_off) = (Boot::new(), Arc::new(AtomicBool::new(false)));
        let (told, started) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let leading = self.leading.clone();
        let parts = move |fence: Fence| {
            let (told, leading) = (told.clone(), leading.clone());
            async move {
                let _counted = Counted::new(leading);
                let _ = told.send(fence);
                std::future::pending::<()>().await;
            }
        };
        let options = Options {
            namespace: "prow-system".into(),
            name: "control".into(),
            identity: identity.into(),
            lease: LEASE,
        };
        let running = tokio::spawn(lead(
            fallible(self.client(), cut_off.clone()),
            options,
            self.clock.clone(),
            Arc::new(boot.clone()),
            parts,
            async move {
                let _ = stopped.await;
            },
        ));
        Candidate {
            boot,
            cut_off,
            started,
            stop,
            running,
        }
    }

    async fn holder(&self) -> String {
        let leases: Api<Lease> = Api::namespaced(self.client(), "prow-system");
        let lease = leases.get("control").await.unwrap();
        lease.spec.unwrap().holder_identity.unwrap()
    }
}

impl Candidate {
    async fn leads(&mut self) -> Fence {
        self.started.recv().await.unwrap()
    }

    fn leads_already(&mut self) -> bool {
        self.started.try_recv().is_ok()
    }
}

/// Counts who leads, and fails when two do.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(leading: Arc<AtomicUsize>) -> Self {
        leading.fetch_add(1, Ordering::SeqCst);
        Self(leading)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A client whose way to the server can be cut.
fn fallible(client: Client, cut_off: Arc<AtomicBool>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, cut_off) = (client.clone(), cut_off.clone());
        async move {
            if cut_off.load(Ordering::SeqCst) {
                return Err(Box::<dyn std::error::Error + Send + Sync>::from("cut off"));
            }
            Ok::<Response<Body>, _>(client.send(request).await?)
        }
    });
    Client::new(service, "default")
}

async fn write(client: Client, name: &str) -> Result<(), kube::Error> {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..Default::default()
        },
        ..Default::default()
    };
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_next_follows_at_once_when_it_stops() {
    let world = World::new().await;
    let mut first = world.run("a");
    first.leads().await;
    let mut second = world.run("b");
    tokio::time::sleep(LEASE * 10).await;
    assert!(!second.leads_already(), "the first renews");
    let begun = Instant::now();
    first.stop.send(()).unwrap();
    first.running.await.unwrap();
    second.leads().await;
    assert!(begun.elapsed() < LEASE, "the Lease was given back");
    assert_eq!(world.holder().await, "b");
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_followed_after_its_lease_and_not_before() {
    let world = World::new().await;
    let mut first = world.run("a");
    first.leads().await;
    let mut second = world.run("b");
    tokio::time::sleep(LEASE).await;
    let begun = Instant::now();
    first.running.abort();
    second.leads().await;
    let waited = begun.elapsed();
    assert!(
        waited >= LEASE * 2 / 3,
        "{waited:?}: what the dead one had sent counts"
    );
    assert!(waited <= LEASE * 2, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_identity_goes_on_at_once() {
    let world = World::new().await;
    let mut first = world.run("a");
    first.leads().await;
    first.running.abort();
    let begun = Instant::now();
    world.run("a").leads().await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// CP-06: it was frozen, thinks that it leads, and has not come round to its timers.
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_frozen_writes_nothing() {
    let world = World::new().await;
    let mut frozen = world.run("a");
    let fence = frozen.leads().await;
    let client = fence.client(world.client());
    write(client.clone(), "while-leading").await.unwrap();
    frozen.boot.jump(LEASE * 2);
    let error = write(client.clone(), "frozen").await.unwrap_err();
    let kube::Error::Service(error) = error else {
        panic!("{error}")
    };
    assert!(error.is::<Stale>(), "{error}");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(maps.get_opt("frozen").await.unwrap().is_none(), "reading goes on");
}

/// CP-06.
#[tokio::test(start_paused = true)]
async fn never_do_two_lead_whatever_is_cut_off() {
    let world = World::new().await;
    let mut candidates: Vec<_> = ["a", "b", "c"].map(|identity| world.run(identity)).into();
    let mut led = 0;
    for round in 0..60 {
        let cut = round % candidates.len();
        for (at, candidate) in candidates.iter_mut().enumerate() {
            candidate.cut_off.store(at == cut, Ordering::SeqCst);
        }
        for _ in 0..(round * 7) % 40 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let leading = world.leading.load(Ordering::SeqCst);
            assert!(leading <= 1, "{leading} lead in round {round}");
        }
        led += candidates
            .iter_mut()
            .filter_map(|c| c.started.try_recv().ok())
            .count();
    }
    assert!(led > 3, "the lead went round: {led}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_steps_down_and_leads_again_when_it_is_back() {
    let world = World::new().await;
    let mut only = world.run("a");
    only.leads().await;
    only.cut_off.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while world.leading.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(begun.elapsed() < LEASE, "before another could lead");
    only.cut_off.store(false, Ordering::SeqCst);
    only.leads().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_costs_no_lead() {
    let world = World::new().await;
    let mut only = world.run("a");
    let fence = only.leads().await;
    // somebody else's edit makes the next renewal a conflict, as a renewal whose answer was lost does
    let leases: Api<Lease> = Api::namespaced(world.client(), "prow-system");
    let mut lease = leases.get("control").await.unwrap();
    lease.metadata.labels = Some([("team".to_owned(), "ops".to_owned())].into());
    leases
        .replace("control", &PostParams::default(), &lease)
        .await
        .unwrap();
    tokio::time::sleep(LEASE * 3).await;
    write(fence.client(world.client()), "still").await.unwrap();
    assert!(!only.leads_already(), "it never stepped down");
}
