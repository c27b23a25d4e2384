//! The counters of Linux perf_event that a metric may name, `perf.NAME`.
//!
//! # Source
//! `include/uapi/linux/perf_event.h`: `enum perf_type_id`, `enum perf_hw_id`, `enum perf_sw_ids`. The names are
//! those that `perf list` prints.

/// One counter: its name, and its numbers for `perf_event_open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name behind `perf.`.
    pub name: &'static str,
    /// The metric, `perf.` included.
    pub metric: &'static str,
    /// `perf_event_attr.type`.
    pub kind: Kind,
    /// `perf_event_attr.config`.
    pub config: u64,
}

/// Provider of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The processor (`PERF_TYPE_HARDWARE`); often absent in virtual machines.
    Hardware = 0,
    /// The kernel (`PERF_TYPE_SOFTWARE`).
    Software = 1,
}

macro_rules! counters {
    ($($kind:ident $name:literal $config:literal),+ $(,)?) => {
        /// Every counter. Clocks count nanoseconds, everything else counts occurrences.
        pub const COUNTERS: &[Counter] = &[$(Counter {
            name: $name,
            metric: concat!("perf.", $name),
            kind: Kind::$kind,
            config: $config,
        }),+];
    };
}

counters![
    Hardware "cycles" 0,
    Hardware "instructions" 1,
    Hardware "cache-references" 2,
    Hardware "cache-misses" 3,
    Hardware "branches" 4,
    Hardware "branch-misses" 5,
    Hardware "bus-cycles" 6,
    Hardware "stalled-cycles-frontend" 7,
    Hardware "stalled-cycles-backend" 8,
    Hardware "ref-cycles" 9,
    Software "cpu-clock" 0,
    Software "task-clock" 1,
    Software "page-faults" 2,
    Software "context-switches" 3,
    Software "cpu-migrations" 4,
    Software "minor-faults" 5,
    Software "major-faults" 6,
];

/// The counter of that name, without `perf.`.
pub fn by_name(name: &str) -> Option<&'static Counter> {
    COUNTERS.iter().find(|counter| counter.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_apart() {
        for (index, counter) in COUNTERS.iter().enumerate() {
            let same = |other: &Counter| other.kind == counter.kind && other.config == counter.config;
            assert!(!COUNTERS[..index].iter().any(|other| other.name == counter.name || same(other)));
        }
        assert_eq!(by_name("context-switches").map(|counter| counter.config), Some(3));
        assert_eq!(by_name("cycle"), None);
    }
}
