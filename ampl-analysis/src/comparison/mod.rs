//! Comparison of runs: structure exactly, times with their noise, and rules that changes may fail.
//!
//! A [`Profile`] has the quantities of one run. [`compare`] puts those of two sides side by side. Structure is exact in
//! each run. How much times differ between equal runs cannot be told from one run: its own intervals are about sampling.

mod align;
mod bootstrap;
mod change;
mod compute_strata;
mod facts;
mod identity;
mod judge;
mod median_run;
mod profile;
mod quantity;
mod rank_test;
mod rows;
mod rule;
mod rule_file;
mod sequence;
mod spread;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ampl_core::units::RankSet;

pub(crate) use bootstrap::median;
pub use change::{FEWEST_FOR_ONE, Method};
pub use facts::{Difference, FactKind, facts};
pub use identity::{Identity, Mismatch, Side};
pub use judge::{Judged, Powerless, Reason, Verdict};
pub use median_run::median_run;
pub use profile::{LeftOut, Profile};
pub use quantity::{Key, Kind, RunQuantity, Scope, Unit};
pub use rows::Row;
pub use rule::{Rule, RuleError};
pub use rule_file::{RuleFile, Settled};
pub use sequence::depends_on_load;
pub use spread::{FEWEST as FEWEST_TO_LEARN, Known, Spread};

/// Settings of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Confidence of intervals and tests, in (0, 1).
    pub confidence: f64,
    /// Standard deviation of one run as a share, as the user gives it.
    pub noise: Option<f64>,
    /// Learned spreads.
    pub spread: Spread,
    /// Strata, `0-3,8` each; without any, those by compute time.
    pub strata: Vec<String>,
    /// Changes that fail.
    pub rules: Vec<Rule>,
    /// Answer that an inconclusive comparison counts as.
    pub inconclusive: Option<Settled>,
    /// True where runs that differ in what must be equal are compared all the same.
    pub allow: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            noise: None,
            spread: Spread::default(),
            strata: Vec::new(),
            rules: Vec::new(),
            inconclusive: None,
            allow: false,
        }
    }
}

/// Two sides side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Runs of each side.
    pub runs: (usize, usize),
    /// Confidence of intervals and tests.
    pub confidence: f64,
    /// Reasons why the sides should not be compared.
    pub mismatches: Vec<Mismatch>,
    /// Facts in which the sides differ, the likeliest causes first.
    pub differences: Vec<Difference>,
    /// Quantities, most important first; none where the sides cannot be compared.
    pub rows: Vec<Row>,
    /// Answers of the rules.
    pub judged: Vec<Judged>,
    /// Answer of all rules together; a pass where there is none.
    pub verdict: Verdict,
    /// Parts that are not compared.
    pub left_out: Vec<LeftOut>,
    /// Call sites of different builds that could not be put together.
    pub unnamed_sites: u64,
    /// True where times are not compared: the sides ran under different MPIs.
    pub no_times: bool,
}

/// Compares two sides, each of one run at least.
///
/// # Errors
/// [`Powerless`] for a rule that cannot fail with so many runs.
pub fn compare(base: &[Profile], new: &[Profile], options: &Options) -> Result<Comparison, Powerless> {
    let mismatches = mismatches(base, new);
    let runs = (base.len(), new.len());
    let differences = facts::differences(base, new);
    let mut left_out: Vec<LeftOut> = Vec::new();
    for found in base.iter().chain(new).flat_map(|run| &run.left_out) {
        if !left_out.iter().any(|known| std::mem::discriminant(known) == std::mem::discriminant(found)) {
            left_out.push(*found);
        }
    }
    let no_times = !options.allow && mismatches.iter().any(Mismatch::is_of_time);
    let mut comparison = Comparison {
        runs,
        confidence: options.confidence,
        mismatches,
        differences,
        rows: Vec::new(),
        judged: Vec::new(),
        verdict: Verdict::Incomparable,
        left_out,
        unnamed_sites: 0,
        no_times,
    };
    if !options.allow && !comparison.mismatches.iter().all(Mismatch::is_of_time) {
        return Ok(comparison);
    }
    let row_options = rows::RowOptions {
        confidence: options.confidence,
        noise: options.noise,
        spread: options.spread.clone(),
        strata: strata_of(base, new, options),
        no_times,
    };
    (comparison.rows, comparison.unnamed_sites) = rows::rows(base, new, &row_options);
    comparison.judged = judge::judge(&options.rules, &comparison.rows, runs, options.confidence, no_times)?;
    comparison.verdict = judge::together(&comparison.judged, options.inconclusive);
    // What did not change and no rule asks for says nothing.
    let asked = comparison.judged.iter().filter(|judged| judged.rule.scope.is_some());
    let asked: BTreeSet<usize> = asked.flat_map(|judged| judged.rows.iter().copied()).collect();
    let shown = |at: usize, row: &Row| {
        let whole = row.key.scope == Scope::Run;
        let differs = row.base != row.new || row.varies;
        whole || differs || row.key.what.kind() == Kind::Time || asked.contains(&at)
    };
    let kept: Vec<usize> = (0..comparison.rows.len()).filter(|&at| shown(at, &comparison.rows[at])).collect();
    let place = |at: &usize| kept.binary_search(at).ok();
    for judged in &mut comparison.judged {
        judged.rows = judged.rows.iter().filter_map(place).collect();
        judged.failed = judged.failed.iter().filter_map(place).collect();
    }
    comparison.rows = kept.iter().map(|&at| comparison.rows[at].clone()).collect();
    Ok(comparison)
}

/// The strata that are given; without these those by compute time, of the base if it has any. Ranks whose time changed
/// otherwise than that of the rest are strata instead, unless each of their sets is there: what slows a part of a stratum
/// down would be thinned out in the whole. Sets that rules name are there in any case.
fn strata_of(base: &[Profile], new: &[Profile], options: &Options) -> Vec<String> {
    let sides = [base, new].into_iter();
    let found = || sides.map(compute_strata::strata).find(|strata| !strata.is_empty()).unwrap_or_default();
    let mut strata = if options.strata.is_empty() { found() } else { options.strata.clone() };
    let changed = compute_strata::changed(base, new);
    if !changed.iter().all(|own| strata.contains(own)) {
        strata = changed;
    }
    let scopes = options.rules.iter().filter_map(|rule| rule.scope.as_deref()?.strip_prefix("stratum:"));
    for named in scopes.filter(|ranks| RankSet::parse(ranks).is_ok()) {
        if !strata.iter().any(|own| own == named) {
            strata.push(named.to_owned());
        }
    }
    strata
}

/// Differences of all runs from the base's first, each once.
fn mismatches(base: &[Profile], new: &[Profile]) -> Vec<Mismatch> {
    let Some(first) = base.first() else { return Vec::new() };
    let mut found = Vec::new();
    for run in base.iter().chain(new) {
        for mismatch in first.identity.mismatches(&run.identity) {
            if !found.contains(&mismatch) {
                found.push(mismatch);
            }
        }
    }
    for (side, runs) in [(Side::Base, base), (Side::New, new)] {
        let unfinished = runs.iter().enumerate().filter(|(_, run)| !run.identity.complete);
        found.extend(unfinished.map(|(at, _)| Mismatch::Unfinished(side, at)));
    }
    found
}
