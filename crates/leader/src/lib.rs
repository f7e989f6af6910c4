//! Leader election: of several processes that could schedule and control, one does.
//!
//! The one that holds a Lease leads. Others watch it by their own clocks and take it once its holder has not renewed it for as long as
//! it is good for; of two that try, the resourceVersion lets one through. Whoever leads works with clients behind a [`Fence`], which
//! refuses every write once two thirds of the Lease have passed since the last renewal was *sent*: a leader that was frozen, suspended
//! or cut off does nothing any more by the time another may lead, even before it notices.
//!
//! What was sent before and arrives late does no harm either: controllers create by unique names or carry a resourceVersion.

mod boot;
mod election;
mod fence;

pub use boot::{BootClock, SystemBootClock};
pub use election::{Options, lead};
pub use fence::{Fence, Stale};
