//! Windows: job objects, named pipes, protected access lists, the registry.

mod beneath;
mod endpoint;
mod facts;
mod files;
mod host;
mod pending;
mod programs;
mod requests;

pub use beneath::{Written, write_beneath};
pub use endpoint::{Endpoint, Stream, connect as endpoint_connect};
pub use facts::{
    container_engine, disk, domain, fqdn, is_shutting_down, kernel, memory, memory_left, os_image,
    script_policy, shells, versions,
};
pub use files::{
    canonical, create_dir, create_private_dir, default_data_dir, is_ours, lock, open_private, remove_tree,
    rename, reserve, write_private,
};
pub use host::{
    DEFAULT_SHELL, base_environment, check_environment, host_name, same_variable, start_hint, variable,
};
pub use pending::{is_servicing, pending_reboot};
pub use programs::{check_folder, find_program, find_shell};
pub use requests::end_requests;
