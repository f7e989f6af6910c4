//! One life a Task: starts them as Tasks come in and folders are found, and passes on what the watch tells.

use super::{
    Error,
    host::Host,
    inbox::{self, Event},
    life::Life,
    orders::News,
    retry::Backoff,
};
use api::Task;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

/// Events not yet looked at; more make the watch wait.
const QUEUE: usize = 64;

struct Supervisor {
    host: Arc<Host>,
    lives: JoinSet<String>,
    news: HashMap<String, watch::Sender<News>>,
}

/// Looks after all Tasks of this node.
pub async fn run(host: Arc<Host>) -> Result<(), Error> {
    let (send, mut events) = mpsc::channel(QUEUE);
    let client = host.server.client();
    let node = host.node.clone();
    let watching = inbox::watch(client, &node, send);
    tokio::pin!(watching);
    let mut supervisor = Supervisor {
        host,
        lives: JoinSet::new(),
        news: HashMap::new(),
    };
    loop {
        tokio::select! {
            () = &mut watching => return Ok(()),
            Some(event) = events.recv() => supervisor.take(event)?,
            Some(ended) = supervisor.lives.join_next() => {
                if let Ok(uid) = ended {
                    supervisor.news.remove(&uid);
                }
            }
        }
    }
}

impl Supervisor {
    fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Changed(task) => self.tell(task),
            Event::Left { uid } => {
                if let Some(news) = self.news.get(&uid) {
                    news.send_modify(|news| news.left = true);
                }
            }
            Event::All(tasks) => {
                let known: HashSet<String> = tasks.iter().map(|task| task.uid().to_owned()).collect();
                for task in tasks {
                    self.tell(task);
                }
                for (uid, news) in &self.news {
                    if !known.contains(uid) {
                        news.send_modify(|news| news.left = true);
                    }
                }
                // Folders of Tasks that ended or went while nobody looked.
                for dir in self.host.home.data.tasks()? {
                    let uid = dir.uid().to_owned();
                    if !known.contains(&uid) && !self.news.contains_key(&uid) && !self.host.kept.has(&uid) {
                        let news = News {
                            task: None,
                            left: true,
                        };
                        self.start(uid, news);
                    }
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, task: Arc<Task>) {
        let uid = task.uid().to_owned();
        let news = News {
            task: Some(task),
            left: false,
        };
        match self.news.get(&uid) {
            Some(sender) => {
                sender.send_replace(news);
            }
            None => self.start(uid, news),
        }
    }

    fn start(&mut self, uid: String, news: News) {
        let dir = match self.host.home.data.task(&uid) {
            Ok(dir) => dir,
            Err(error) => {
                tracing::error!(%error, "a Task is left alone");
                return;
            }
        };
        let (sender, receiver) = watch::channel(news);
        self.news.insert(uid.clone(), sender);
        let host = self.host.clone();
        self.lives.spawn(async move {
            let mut backoff = Backoff::new(Duration::from_secs(30));
            while let Err(error) = Life::live(host.clone(), dir.clone(), receiver.clone()).await {
                tracing::error!(uid, %error, "a Task cannot be looked after; trying again");
                backoff.wait().await;
            }
            uid
        });
    }
}
