//! Unix: sessions and process groups, `/proc`, cgroup v2 where it is ours, Unix sockets.

mod boot;
mod cgroup;
mod endpoint;
mod files;
mod proc;
mod process;
mod survivors;

pub use boot::{boot_id, boot_nanos};
pub use endpoint::{Endpoint, Stream, connect as endpoint_connect};
pub use files::{
    create_dir, create_private_dir, is_ours, lock, open_private, remove_tree, reserve, write_private,
};
pub use process::{created, detach_from_session, image};
pub use survivors::{Process, end_survivors, survivors, tree_gone};
