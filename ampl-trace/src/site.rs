//! Call sites, the paths to them, and the exact totals of their calls.

use ampl_core::config::MOST_FRAMES;

/// A call site: an offset in a module; and the caller of its function, if paths are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// Index into [`modules`](crate::RankTrace::modules).
    pub module: u32,
    /// Offset of the return address in the module's file image.
    pub offset: u64,
    /// Next function on the path outwards: one more than its index in the same list; 0 where the path ends.
    pub caller: u32,
}

/// Call path of `site`, an index into `sites`, from the call outwards. It has at most `MOST_FRAMES` frames.
pub fn call_path(sites: &[Site], site: u32) -> impl Iterator<Item = Site> + '_ {
    let next = |site: &Site| sites.get(site.caller.checked_sub(1)? as usize).copied();
    std::iter::successors(sites.get(site as usize).copied(), next).take(MOST_FRAMES as usize)
}

/// Exact totals of one function at one call site of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aggregate {
    /// Index into the rank's sites; `None` where there was no room for its record, and for the entry that sites beyond
    /// the table share, whose function is [`SEVERAL`](crate::totals::SEVERAL).
    pub site: Option<u32>,
    /// Index into the function table.
    pub function: u16,
    /// Number of calls.
    pub calls: u64,
    /// Time in them, nanoseconds.
    pub time_ns: f64,
    /// Sum of squares of their times, ns².
    pub time_sq: f64,
    /// Shortest, nanoseconds.
    pub min_ns: f64,
    /// Longest, nanoseconds.
    pub max_ns: f64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}
