//! `prow top`: show how busy nodes or queues are.

use crate::{
    cli::Global, fleet::list, outcome::Outcome, output::Table, select::with_query, session::Session,
};
use anyhow::Result;
use api::{
    Job, Node, Queue, Task, node::SLOTS, placement::ResourceList, quantity::Quantity, queue::StopPolicy,
    task::TaskPhase,
};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;

/// Show how busy nodes or queues are.
#[derive(Args, Debug)]
pub struct Top {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Running Tasks and capacity of each node
    #[command(alias = "node")]
    Nodes {
        /// Only nodes with these labels
        #[arg(short = 'l', long = "selector", value_name = "LABELS")]
        selector: Option<String>,
    },
    /// Running and waiting work of each queue
    #[command(alias = "queue")]
    Queues,
}

impl Top {
    /// Shows it.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let mut table = match self.what {
            What::Nodes { selector } => nodes(&session, selector.as_deref()).await?,
            What::Queues => queues(&session).await?,
        };
        table.print(true)?;
        Ok(Outcome::Done)
    }
}

async fn nodes(session: &Session, selector: Option<&str>) -> Result<Table> {
    let nodes_path = with_query(
        "/apis/prow.windows/v1/nodes".into(),
        [("labelSelector", selector)],
    );
    let (mut nodes, tasks) = tokio::try_join!(
        list::<Node>(session, &nodes_path),
        list::<Task>(session, "/apis/prow.windows/v1/tasks")
    )?;
    nodes.sort_by(|a, b| a.name().cmp(b.name()));
    let mut running: BTreeMap<&str, usize> = BTreeMap::new();
    for task in &tasks {
        let phase = task
            .status
            .as_ref()
            .map(|status| status.phase)
            .unwrap_or_default();
        if matches!(
            phase,
            TaskPhase::Bound | TaskPhase::Claimed | TaskPhase::Running | TaskPhase::Rebooting
        ) {
            *running.entry(&task.spec.node_name).or_default() += 1;
        }
    }
    let mut table = Table::new(["NAME", "STATE", "TASKS", "SLOTS", "CPU", "MEMORY"]);
    for node in &nodes {
        let state = match (node.is_ready(), node.spec.unschedulable) {
            (false, _) => "NotReady",
            (true, true) => "Unschedulable",
            (true, false) => "Ready",
        };
        let has = |name: &str| {
            let amount = node
                .status
                .as_ref()
                .and_then(|status| status.allocatable.get(name));
            amount.map_or("<unknown>".into(), ToString::to_string)
        };
        let tasks = running.get(node.name()).copied().unwrap_or(0);
        table.row([
            node.name().to_owned(),
            state.into(),
            tasks.to_string(),
            has(SLOTS),
            has("cpu"),
            has("memory"),
        ]);
    }
    Ok(table)
}

/// As `cpu=4,memory=8Gi`.
fn quota(quota: &ResourceList) -> String {
    if quota.is_empty() {
        return "<none>".into();
    }
    let one = |(name, amount): (&String, &Quantity)| format!("{name}={amount}");
    quota.iter().map(one).collect::<Vec<_>>().join(",")
}

async fn queues(session: &Session) -> Result<Table> {
    let (mut queues, jobs) = tokio::try_join!(
        list::<Queue>(session, "/apis/prow.windows/v1/queues"),
        list::<Job>(session, "/apis/prow.windows/v1/jobs")
    )?;
    queues.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut table = Table::new([
        "NAME", "STATE", "JOBS", "RUNNING", "PENDING", "PRIORITY", "WEIGHT", "LIMIT", "QUOTA",
    ]);
    for queue in &queues {
        let name = queue.metadata.name.as_deref().unwrap_or_default();
        let open: Vec<&Job> = jobs
            .iter()
            .filter(|job| job.spec.queue_name == name && !job.phase().is_terminal())
            .collect();
        let sum = |f: fn(&api::JobStatus) -> i32| {
            open.iter()
                .filter_map(|job| job.status.as_ref())
                .map(f)
                .sum::<i32>()
        };
        table.row([
            name.to_owned(),
            match queue.spec.stop_policy {
                StopPolicy::None => "Open",
                StopPolicy::Hold => "Held",
                StopPolicy::HoldAndDrain => "Drained",
            }
            .to_owned(),
            open.len().to_string(),
            sum(|status| status.active).to_string(),
            sum(|status| status.pending).to_string(),
            queue.spec.priority.to_string(),
            queue.spec.weight.to_string(),
            queue
                .spec
                .max_running
                .map_or("<none>".into(), |limit| limit.to_string()),
            quota(&queue.spec.quota),
        ]);
    }
    Ok(table)
}
