//! Unix: sessions, the subreaper, `/proc`, cgroup v2 where it is ours, Unix sockets.

mod beneath;
mod boot;
mod cgroup;
mod endpoint;
mod facts;
mod files;
mod group;
mod host;
mod proc;
mod process;
mod reaper;
mod reboot;
mod requests;
mod survivors;

pub use beneath::{Written, write_beneath};
pub use boot::{boot_id, boot_nanos};
pub use endpoint::{Endpoint, Stream, connect as endpoint_connect};
pub use facts::{
    RUNNERS_DIE, container_engine, disk, domain, end_process, fqdn, is_shutting_down, kernel, memory,
    memory_left, os_image, pending_reboot, runners_survive, script_policy, shells, versions,
};
pub use files::{
    canonical, create_dir, create_private_dir, default_data_dir, is_ours, lock, open_private, remove_tree,
    rename, reserve, write_private,
};
pub use group::{Ask, Containment, Group, Output, Started};
pub use host::{
    DEFAULT_SHELL, TEMP_VARIABLES, base_environment, check_arguments, check_environment, check_folder,
    code_pages, find_program, find_shell, host_name, same_variable, start_hint, variable,
};
pub use process::{Detached, created, detach_from_session, image, never_began, start_detached};
pub use reboot::order_reboot;
pub use requests::end_requests;
pub use survivors::{end_survivors, survivors, tree_gone};
