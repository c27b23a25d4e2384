//! When a window ends.

use ampl_core::config::Marker;
use ampl_core::config::site::{CodeRange, Site};
use ampl_core::mpi::Function;

/// The marker of a job as the hot path checks it.
#[derive(Debug)]
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
    /// Multiples of `nanos` since T0.
    Period {
        /// Length of a window.
        nanos: u64,
    },
}

impl Boundary {
    /// The boundary of `marker`; `None` if it names a function or site that cannot be.
    pub fn new(marker: &Marker, every: u32) -> Option<Self> {
        Some(match marker {
            Marker::Period(nanos) => Self::Period { nanos: nanos.saturating_mul(u64::from(every)) },
            Marker::Mpi { function, site } => Self::Call {
                function: Function::by_name(function)?,
                site: match site {
                    None => None,
                    Some(site) => match Site::parse(site)? {
                        Site::Code(ranges) => Some(ranges),
                        // Only `ampl exec` can read line tables, before the program starts.
                        Site::Line { .. } => return None,
                    },
                },
                every,
            },
        })
    }
}

/// Whether the return address `offset` of the module at `path` lies in one of `ranges`.
pub fn holds(ranges: &[CodeRange], path: &str, offset: u64) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ranges.iter().any(|range| range.module == name && range.holds(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_may_be_bound_to_code() {
        let marker = |site: &str| Marker::Mpi { function: "MPI_Barrier".into(), site: Some(site.into()) };
        let Some(Boundary::Call { site: Some(ranges), .. }) = Boundary::new(&marker("app+0x40"), 1) else {
            panic!("a site of code is a boundary");
        };
        assert!(holds(&ranges, "/somewhere/app", 0x40));
        assert!(!holds(&ranges, "/somewhere/app", 0x41));
        assert!(!holds(&ranges, "/somewhere/other", 0x40));
        assert!(Boundary::new(&marker("main.c:12"), 1).is_none());
    }
}
