//! Windows: job objects, named pipes, protected access lists, the registry.

mod beneath;
mod boot;
mod command_line;
mod endpoint;
mod exit;
mod facts;
mod files;
mod group;
mod host;
mod pending;
mod process;
mod programs;
mod reboot;
mod requests;
mod signal;
mod survivors;

pub use beneath::{Written, write_beneath};
pub use boot::{boot_id, boot_nanos};
pub use command_line::check_arguments;
pub use endpoint::{Endpoint, Stream, connect as endpoint_connect};
pub use exit::never_began;
pub use facts::{
    container_engine, disk, domain, fqdn, is_shutting_down, kernel, memory, memory_left, os_image,
    script_policy, shells, versions,
};
pub use files::{
    canonical, create_dir, create_private_dir, default_data_dir, is_ours, lock, open_private, remove_tree,
    rename, reserve, write_private,
};
pub use group::{Containment, Group, Output, Started};
pub use host::{
    DEFAULT_SHELL, TEMP_VARIABLES, base_environment, check_environment, code_pages, host_name, same_variable,
    start_hint, variable,
};
pub use pending::pending_reboot;
pub use process::{
    Detached, RUNNERS_DIE, created, detach_from_session, end_process, image, runners_survive, start_detached,
};
pub use programs::{check_folder, find_program, find_shell};
pub use reboot::order_reboot;
pub use requests::end_requests;
pub use signal::{Ask, send_signal};
pub use survivors::{end_survivors, survivors, tree_gone};
