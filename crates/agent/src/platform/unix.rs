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
mod requests;
mod survivors;

pub use beneath::{Written, write_beneath};
pub use boot::{boot_id, boot_nanos};
pub use endpoint::{Endpoint, Stream, connect as endpoint_connect};
pub use facts::{
    disk, end_process, fqdn, is_shutting_down, kernel, memory, os_image, runners_survive, shells,
};
pub use files::{
    create_dir, create_private_dir, is_ours, lock, open_private, remove_tree, reserve, write_private,
};
pub use group::{Ask, Containment, Group, Launch, Limits, Output, Started};
pub use host::{DEFAULT_SHELL, base_environment, find_program, host_name, start_hint, variable};
pub use process::{created, detach_from_session, image};
pub use reaper::{Exit, Usage};
pub use requests::end_requests;
pub use survivors::{Process, end_survivors, survivors, tree_gone};
