//! A run with fewer steps: a short replay that stands for the long one.

use ampl_core::mpi::Function;
use ampl_reader::sites::Symbols;
use ampl_reader::{Call, Rank};

/// The call that begins each step of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    function: Function,
    /// Indices of the call sites that have its name.
    sites: Vec<u32>,
}

impl Marker {
    /// The marker that `ampl timesteps` names `mpi:FUNCTION@SITE`, in the calls of `rank`; `None` of another name.
    pub fn of(name: &str, rank: &Rank<'_>) -> Option<Self> {
        let (function, site) = name.strip_prefix("mpi:")?.split_once('@')?;
        let function = Function::by_name(function)?;
        let mut symbols = Symbols::default();
        let all = 0..rank.trace.sites.len() as u32;
        let sites = all.filter(|&index| symbols.site(&rank.trace, index).as_deref() == Some(site)).collect();
        Some(Self { function, sites })
    }

    /// True for a call that begins a step.
    pub fn is(&self, call: &Call) -> bool {
        call.function == self.function && call.site.is_some_and(|site| self.sites.contains(&site))
    }
}

/// Steps that are replayed: the first ones, and the last.
#[derive(Clone, Debug)]
pub struct Cut {
    marker: Marker,
    /// Steps that are kept, and those that there are.
    kept: u64,
    all: u64,
    begun: u64,
}

impl Cut {
    /// `kept` steps of the calls, which begin `all` steps; at least two are kept.
    pub fn new(marker: Marker, kept: u64, all: u64) -> Self {
        Self { marker, kept: kept.max(2), all, begun: 0 }
    }

    /// Steps of the run.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// Steps that are left out.
    pub fn left_out(&self) -> u64 {
        self.all.saturating_sub(self.kept)
    }

    /// True where `call`, the next one, is replayed.
    pub fn plays(&mut self, call: &Call) -> bool {
        self.begun += u64::from(self.marker.is(call));
        self.begun < self.kept || self.begun >= self.all
    }

    /// True where `call` begins a step.
    pub fn begins(&self, call: &Call) -> bool {
        self.marker.is(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completions::tests::call;

    #[test]
    fn the_first_steps_and_the_last_are_kept_with_all_around_them() {
        let at = |function: &str, site: u32, seq: u64| Call {
            site: Some(site),
            seq,
            ..call(function, Vec::new(), Vec::new())
        };
        let mut calls = vec![at("MPI_Init", 9, 0)];
        for step in 0..10 {
            calls.push(at("MPI_Bcast", 4, 10 * step + 1));
            // The same function elsewhere is no step.
            calls.push(at("MPI_Bcast", 5, 10 * step + 2));
        }
        calls.push(at("MPI_Finalize", 9, 99));
        let marker = Marker { function: Function::by_name("MPI_Bcast").unwrap(), sites: vec![4] };
        let all = calls.iter().filter(|call| marker.is(call)).count() as u64;
        let mut cut = Cut::new(marker, 3, all);
        assert_eq!((all, cut.left_out()), (10, 7));
        let played: Vec<u64> = calls.iter().filter(|call| cut.plays(call)).map(|call| call.seq).collect();
        assert_eq!(played, [0, 1, 2, 11, 12, 91, 92, 99]);
    }
}
