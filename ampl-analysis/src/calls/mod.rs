//! The places where MPI functions are called, with their calls, times, messages, and who is late.

mod arguments;
mod late_ranks;
mod lateness;
mod objects;
mod places;
mod recorded;
mod rows;
mod unreturned;
mod wrappers;

pub use arguments::{Arguments, message_bytes, moved_bytes};
pub use late_ranks::{CommWaits, LateRanks};
pub use lateness::Late;
pub use objects::{Objects, is_whole, predefined_bytes};
pub use places::{NOWHERE, Number, Parts, Path, Place, Places, recorded, time_ns};
pub use recorded::{Comms, Key, Recorded, Sizes, of as recorded_calls};
pub use rows::{Basis, Bytes, CallTable, Peers, Row, SizeClass, table};
pub use unreturned::{Unreturned, unreturned};
pub use wrappers::starts_programs;
