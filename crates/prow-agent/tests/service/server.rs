//! An API server for the agent under test.

use crate::door::Door;
use api::{
    Job, Node, Task, TaskSpec,
    identity::Identity,
    names::{self, Key},
    task::JobRef,
    work::Work,
};
use informer::{Informer, Options};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, api::PostParams};
use pki::{Authority, JoinToken};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// No test waits longer for one thing; reached only when something hangs.
const HANG: Duration = Duration::from_secs(180);

/// A server behind a door, and what the test knows of it.
pub struct Server {
    pub door: Door,
    client: kube::Client,
    nodes: Informer<Node>,
    tasks: Informer<Task>,
    authority: Arc<Authority>,
    _folder: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(api::clock::SystemClock);
        let authority = Arc::new(Authority::open(folder.path(), clock).unwrap());
        let certificate = authority.server(folder.path(), &["127.0.0.1".into()]).unwrap();
        let tls = pki::tls::server(&certificate, authority.certificate(), &["h2", "http/1.1"]).unwrap();
        let mut kinds = machinery::core_kinds::all();
        kinds.extend([
            machinery::typed::kind::<Job>(),
            machinery::typed::kind::<Task>(),
            machinery::typed::kind::<Node>(),
        ]);
        let options = apiserver::Options {
            authority: Some(authority.clone()),
            ..Default::default()
        };
        let server = apiserver::Server::start(Arc::new(store::Memory::new()), kinds, options)
            .await
            .unwrap();
        let client = server.client(Identity::part("test"));
        let kept: Arc<dyn logs::Logs> =
            Arc::new(logs::Sqlite::open(folder.path(), logs::Options::default()).unwrap());
        let tasks = Informer::<Task>::start(client.clone(), Options::all());
        let gateway = gateway::Gateway::new(kept, tasks.clone(), client.clone());
        server.mount(gateway.router());
        tokio::spawn(async move { gateway.run().await });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { server.serve(listener, Some(tls), std::future::pending()).await });
        Self {
            door: Door::to(address).await,
            nodes: Informer::start(client.clone(), Options::all()),
            tasks,
            client,
            authority,
            _folder: folder,
        }
    }

    /// Where agents find it.
    pub fn url(&self) -> String {
        format!("https://{}", self.door.address)
    }

    /// A new join token for any name.
    pub async fn token(&self) -> String {
        let token = JoinToken::generate(&self.authority.hash()).unwrap();
        let mut secret = Secret {
            type_: Some("prow.windows/enrolment-token".into()),
            ..Secret::default()
        };
        secret.metadata.name = Some(format!("enrol-{}", token.bearer.id));
        let data = [
            ("secret-hash", token.bearer.secret_hash()),
            ("name-pattern", "*".to_owned()),
        ];
        let bytes = data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
        secret.data = Some(bytes.into());
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "prow-system");
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        token.to_string()
    }

    /// Waits until a node is ready.
    pub async fn ready(&self, node: &str) {
        let mut changes = self.nodes.subscribe();
        guarded("the node is never ready", async {
            while !self.nodes.all().iter().any(|n| n.name() == node && n.is_ready()) {
                changes.next().await;
            }
        })
        .await;
    }

    /// A Task with one step, bound to a node.
    pub async fn task(&self, name: &str, node: &str, step: Value) -> Task {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), "default");
        let job: Job = serde_json::from_value(json!({
            "apiVersion": "prow.windows/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"steps": [step]},
        }))
        .unwrap();
        let job = jobs.create(&PostParams::default(), &job).await.unwrap();
        let uid = job.metadata.uid.clone().unwrap();
        let work = Work::of(&job.spec).unwrap();
        let spec = TaskSpec {
            node_name: node.into(),
            count: 1,
            work: work.inline(),
            job_ref: JobRef {
                name: name.into(),
                uid: uid.clone(),
                work_hash: work.hash,
            },
            ..TaskSpec::default()
        };
        let tasks: Api<Task> = Api::namespaced(self.client.clone(), "default");
        let task = Task::new(&names::task(name, &uid, Key::Index(0), 0), spec);
        tasks.create(&PostParams::default(), &task).await.unwrap()
    }

    /// Waits until a Task is as wanted.
    pub async fn until(&self, task: &Task, wanted: impl Fn(&Task) -> bool) -> Task {
        let mut changes = self.tasks.subscribe();
        guarded("the Task never gets there", async {
            loop {
                if let Some(found) = self.tasks.by_uid(task.uid()).filter(|task| wanted(task)) {
                    return (*found).clone();
                }
                changes.next().await;
            }
        })
        .await
    }
}

/// Awaits what may hang.
pub async fn guarded<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.expect(what)
}
