//! The loop of a program that advances time, from the structure of its calls.
//!
//! Each thread's loop is found by [`ampl_trace::loops`], as agents do while the program runs. Steps before it that warm
//! up are reported apart.
//!
//! Work is of the order of the grammars of groups, whatever the number of ranks and calls.
//!
//! # Source
//! M. Noeth and others, *ScalaTrace* (2009), §5.3, which takes the outermost repetition of equal signatures, and so finds
//! other numbers where arguments vary from step to step.

mod begins;
mod job;
mod loop_names;
mod shapes;

pub use begins::Begins;
pub use job::timesteps;
pub use loop_names::Named;
pub use shapes::Around;
pub use shapes::Frame;

/// The timestep loop of a run, or the reason why there is none.
#[derive(Clone, Debug)]
pub struct Timesteps<'a> {
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks whose calls are stored and were examined.
    pub examined: u32,
    /// The loop.
    pub outcome: Result<Loop<'a>, Absence>,
    /// Steps that ranks show by themselves, most ranks first; none of ranks without a loop. Ranks with gaps count for the
    /// loop only if there are no others.
    pub counts: Vec<Count>,
    /// Calls that begin the steps of ranks that show a loop.
    begins: Vec<Begins>,
}

impl Timesteps<'_> {
    /// Calls that begin the steps of `rank`; `None` where it shows no loop.
    pub fn begins(&self, rank: u32) -> Option<&Begins> {
        self.begins.iter().find(|begins| begins.has(rank))
    }
}

/// Ranks that show one number of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Steps; `None` where these ranks show no loop.
    pub steps: Option<u64>,
    /// The ranks, ascending.
    pub ranks: Vec<u32>,
    /// True where calls of these were counted and not recorded: there may be more steps.
    pub has_gaps: bool,
}

/// Reason why a run has no timestep loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// No call is stored.
    NoCalls,
    /// No calls of most ranks repeat as a loop over time.
    NoLoop,
    /// Ranks show different numbers, none of them most ranks.
    Disagreement,
    /// Sequences were too irregular for the work allowed.
    TooIrregular,
}

/// A loop that advances time. Numbers of calls are those of one rank on average over the ranks that agree.
#[derive(Clone, Debug)]
pub struct Loop<'a> {
    /// Steps: iterations of the loop.
    pub steps: u64,
    /// Share of the job's ranks that show as many, in (0, 1].
    pub confidence: f64,
    /// Calls in a step, with what is done in some steps only.
    pub calls_per_step: f64,
    /// Calls in a step by function, descending.
    pub functions: Vec<(u16, f64)>,
    /// Calls before the loop.
    pub start_up: f64,
    /// Steps of the program that one of these may hold, as its parts are alike, or come in turns; 1 where nothing suggests
    /// more.
    pub may_hold: u64,
    /// Other numbers of steps that a program with the same calls may have.
    pub others: Vec<u64>,
    /// Steps before it, as warm-up.
    pub warm_up: u64,
    /// Calls behind the loop.
    pub wind_down: f64,
    /// Calls inside the loop that were counted and not recorded: there may be more steps.
    pub missing: f64,
    /// True where the number of steps comes from arguments, too, because calls of all parts of a step look alike.
    pub by_arguments: bool,
    /// A call of each step.
    pub place: Place<'a>,
    /// Functions that all calls of the loop are made in, from the innermost outwards: modules, and one more than offsets
    /// of first bytes, or return addresses where paths are recorded.
    pub common: Vec<Frame<'a>>,
}

/// A place in the program that calls MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Index of the function.
    pub function: u16,
    /// Return addresses from the call outwards; none where calls are not told apart by place.
    pub path: Vec<Frame<'a>>,
    /// True where it is called once in each step: a marker of windows.
    pub is_marker: bool,
}

#[cfg(test)]
mod tests;
