//! The core as stories, then against random worlds.

mod lab;
mod lies;
mod near;
mod oracle;
mod order;
mod per_node;
mod random;
mod reference;
mod room;
mod waiting;
mod work;
