//! The core as stories, then against random worlds.

mod lab;
mod near;
mod order;
mod per_node;
mod random;
mod room;
mod waiting;
mod work;
