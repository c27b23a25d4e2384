//! The timestep loop with the names of functions and places.

use ampl_core::mpi::Function;
use ampl_reader::sites::Symbols;

use super::{Absence, Count, Frame, Loop, Place, Timesteps};

/// The loop of a run by names, or the reason why there is none. Numbers are those of [`Loop`], `None` without one.
#[derive(Clone, Debug)]
pub struct Named {
    /// Steps.
    pub steps: Option<u64>,
    /// Calls in a step.
    pub calls_per_step: Option<f64>,
    /// Place of a call of each step.
    pub site: Option<String>,
    /// Calls in a step by function, most first.
    pub functions: Vec<(&'static str, f64)>,
    /// Share of the job's ranks that show as many steps, or no loop where there is none.
    pub confidence: f64,
    /// Reason for which there is no loop.
    pub absence: Option<Absence>,
    /// Function that is called at `site`.
    pub function: Option<&'static str>,
    /// Value of `window.marker` that ends windows with steps, where one call does.
    pub marker: Option<String>,
    /// Functions that all calls of the loop come from, from the outermost inwards, as far as they are known.
    pub path: Vec<String>,
    /// Steps of the program that one of these may hold.
    pub may_hold: Option<u64>,
    /// Other numbers of steps that a program with the same calls may have.
    pub others: Vec<u64>,
    /// Steps before the loop that warm up.
    pub warm_up: Option<u64>,
    /// Calls before the loop.
    pub start_up: Option<f64>,
    /// Calls behind it.
    pub wind_down: Option<f64>,
    /// Calls inside the loop that were counted and not recorded.
    pub missing: Option<f64>,
    /// True where the number rests on arguments, too.
    pub by_arguments: Option<bool>,
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks whose calls are stored.
    pub examined: u32,
    /// Steps by the calls of each rank alone.
    pub counts: Vec<Count>,
}

impl Named {
    /// The names of what was `found`.
    pub fn of(found: &Timesteps<'_>, symbols: &mut Symbols) -> Self {
        let own = found.outcome.as_ref().ok();
        let share = |ranks: usize| ranks as f64 / f64::from(found.ranks.max(1));
        let without = found.counts.iter().find(|count| count.steps.is_none());
        let site = own.and_then(|own| site(&own.place, symbols));
        let marker = own.filter(|own| own.place.is_marker).zip(site.as_ref());
        Self {
            steps: own.map(|own| own.steps),
            calls_per_step: own.map(|own| own.calls_per_step),
            functions: own.map(mix).unwrap_or_default(),
            confidence: match own {
                Some(own) => own.confidence,
                None => without.map_or(0.0, |count| share(count.ranks.len())),
            },
            absence: found.outcome.as_ref().err().copied(),
            function: own.map(|own| Function::name_of(own.place.function)),
            marker: marker.map(|(own, site)| format!("mpi:{}@{site}", Function::name_of(own.place.function))),
            site,
            path: own.map(|own| path(&own.common, symbols)).unwrap_or_default(),
            may_hold: own.map(|own| own.may_hold),
            others: own.map(|own| own.others.clone()).unwrap_or_default(),
            warm_up: own.map(|own| own.warm_up),
            start_up: own.map(|own| own.start_up),
            wind_down: own.map(|own| own.wind_down),
            missing: own.map(|own| own.missing),
            by_arguments: own.map(|own| own.by_arguments),
            ranks: found.ranks,
            examined: found.examined,
            counts: found.counts.clone(),
        }
    }
}

fn mix(own: &Loop<'_>) -> Vec<(&'static str, f64)> {
    own.functions.iter().map(|&(function, calls)| (Function::name_of(function), calls)).collect()
}

/// `file:line` or `module+0xoffset`; none where calls are not told apart by place.
fn site(place: &Place<'_>, symbols: &mut Symbols) -> Option<String> {
    let &(module, offset) = place.path.first()?;
    (!module.is_empty() || offset > 0).then(|| symbols.name(module, offset))
}

/// Names of functions from the outermost inwards, without the code that starts programs.
fn path(common: &[Frame<'_>], symbols: &mut Symbols) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for &(module, offset) in common {
        let Some(function) = symbols.function(module, offset) else { break };
        let is_outermost = function.name == "main";
        names.push(function.name);
        if is_outermost {
            break;
        }
    }
    names.reverse();
    names
}
