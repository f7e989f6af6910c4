//! What the agent says of its host.

use super::settings::Settings;
use crate::platform;
use api::{
    NodeStatus,
    node::{Address, NodeInfo, SLOTS},
    placement::ResourceList,
    quantity::Quantity,
};
use std::path::Path;

/// How features name shells: `shell/pwsh`.
const SHELL: &str = "shell/";

/// Whether this agent has a feature that `Task.spec.requires` names. That a shell is missing shows at the start of the step.
pub fn has(feature: &str) -> bool {
    feature.starts_with(SHELL)
}

/// Capacity of the host: cpu, memory, disk, slots.
pub fn capacity(settings: &Settings, data: &Path) -> ResourceList {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let disk = platform::disk(data).map_or(0, |(size, _)| size);
    let amounts = [
        ("cpu", cpus.to_string()),
        ("memory", platform::memory().to_string()),
        ("disk", disk.to_string()),
        (SLOTS, settings.slots.to_string()),
    ];
    amounts
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
        .collect()
}

/// All facts that are quickly known; conditions and slower ones are added by [`super::node_status`].
pub fn collect(settings: &Settings, data: &Path, boot_id: &str) -> NodeStatus {
    let capacity = capacity(settings, data);
    let fqdn = platform::fqdn();
    let (domain, role) = platform::domain();
    let shells = platform::shells();
    NodeStatus {
        allocatable: capacity.clone(),
        capacity,
        conditions: Vec::new(),
        node_info: NodeInfo {
            operating_system: std::env::consts::OS.into(),
            architecture: architecture().into(),
            os_image: platform::os_image(),
            kernel_version: platform::kernel(),
            domain,
            fqdn: fqdn.clone(),
            domain_role: role.to_owned(),
            boot_id: boot_id.to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").into(),
        },
        addresses: vec![Address {
            type_: "Hostname".into(),
            address: fqdn,
        }],
        features: shells.keys().map(|shell| format!("{SHELL}{shell}")).collect(),
        versions: shells,
    }
}

/// Kubernetes' word for this machine's architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
