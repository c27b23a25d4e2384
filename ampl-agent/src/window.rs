//! Windows and their ends.

use std::sync::atomic::{AtomicU64, Ordering};

use ampl_core::config::Marker;
use ampl_core::config::site::CodeRange;
use ampl_core::mpi::Function;

/// The marker of a job as the hot path checks it.
#[derive(Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Entry of `function`, every so many times.
    Call {
        /// The function.
        function: Function,
        /// Where it must be called from; `None` for anywhere.
        site: Option<Vec<CodeRange>>,
        /// Markers per window.
        every: u32,
    },
    /// The region's exit, every so many times.
    Region {
        /// Markers per window.
        every: u32,
    },
    /// `MPI_Pcontrol` with a level of the program's own, every so many times.
    Pcontrol {
        /// Markers per window.
        every: u32,
    },
    /// Multiples of `nanos` since T0.
    Period {
        /// Length of a window.
        nanos: u64,
    },
    /// The program's steps, once they are found and announced; multiples of `nanos` before.
    Steps {
        /// Length of a window before.
        nanos: u64,
    },
}

impl Boundary {
    /// The boundary of `marker`; `None` if it names a function or site that cannot be.
    pub fn new(marker: &Marker, every: u32) -> Option<Self> {
        Some(match marker {
            Marker::Period(nanos) => Self::Period { nanos: nanos.saturating_mul(u64::from(every)) },
            Marker::Auto => Self::Steps { nanos: Marker::AUTO_PERIOD_NS },
            Marker::Region(_) => Self::Region { every },
            Marker::Pcontrol => Self::Pcontrol { every },
            Marker::Mpi { function, site } => Self::Call {
                function: Function::by_name(function)?,
                site: match site {
                    // Only `ampl exec` can read line tables, before the program starts.
                    Some(site) if site.code().is_empty() => return None,
                    site => site.as_ref().map(|site| site.code().to_vec()),
                },
                every,
            },
        })
    }

    /// Markers per window; `None` where the clock ends windows, or steps are found.
    pub fn markers(&self) -> Option<u32> {
        match *self {
            Self::Call { every, .. } | Self::Region { every } | Self::Pcontrol { every } => Some(every),
            Self::Period { .. } | Self::Steps { .. } => None,
        }
    }
}

/// Spans in which the program wants nothing recorded or summarised, between `MPI_Pcontrol(0)` and
/// `MPI_Pcontrol(1)`.
#[derive(Debug, Default)]
pub struct Pause {
    /// Ticks at which the one that lasts began; 0 while there is none.
    since: AtomicU64,
    /// Ticks of pauses that are over.
    total: AtomicU64,
}

impl Pause {
    /// True while a pause lasts.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.since.load(Ordering::Relaxed) != 0
    }

    /// Ticks paused until `now`.
    pub fn ticks(&self, now: u64) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        let lasting = if since == 0 { 0 } else { now.saturating_sub(since) };
        self.total.load(Ordering::Relaxed) + lasting
    }

    /// Begins a pause at `now`, unless one lasts. Callers take turns.
    pub fn begin(&self, now: u64) {
        if !self.is_on() {
            self.since.store(now.max(1), Ordering::Relaxed);
        }
    }

    /// Ends the pause that lasts at `now`. Callers take turns.
    pub fn end(&self, now: u64) {
        let total = self.ticks(now);
        self.total.store(total, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }
}

/// True where the return address `offset` of the module at `path` lies in one of `ranges`.
pub fn holds(ranges: &[CodeRange], path: &str, offset: u64) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ranges.iter().any(|range| range.module == name && range.holds(offset))
}

#[cfg(test)]
mod tests {
    use ampl_core::config::site::Site;

    use super::*;

    #[test]
    fn a_marker_may_be_bound_to_code() {
        let marker = |site: &str| Marker::Mpi { function: "MPI_Barrier".into(), site: Site::parse(site) };
        let Some(Boundary::Call { site: Some(ranges), .. }) = Boundary::new(&marker("app+0x40"), 1) else {
            panic!("a site of code is a boundary");
        };
        assert!(holds(&ranges, "/somewhere/app", 0x40));
        assert!(!holds(&ranges, "/somewhere/app", 0x41));
        assert!(!holds(&ranges, "/somewhere/other", 0x40));
        assert!(Boundary::new(&marker("main.c:12"), 1).is_none());
        assert_eq!(Boundary::new(&marker("main.c:12=app+0x40"), 1), Boundary::new(&marker("app+0x40"), 1));
    }
}
