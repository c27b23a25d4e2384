//! Quantities of two sides, a row each.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::units::RankSet;

use super::align::moved;
use super::change::{Method, Noise, Samples};
use super::facts::FactKind;
use super::profile::Profile;
use super::quantity::{Key, Kind, RunQuantity, Scope, Unit};
use super::spread::{Spread, scale};

/// A quantity on both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// The quantity and its part of the run.
    pub key: Key,
    /// Value of the base: the median of its runs. `None` where no run of it has any.
    pub base: Option<f64>,
    /// Value of the new runs.
    pub new: Option<f64>,
    /// Least and greatest value of each side.
    pub ranges: [Option<(f64, f64)>; 2],
    /// Change relative to the base; of shares the difference. `None` where the base has nothing.
    pub change: Option<f64>,
    /// Interval of the change.
    pub interval: Option<(f64, f64)>,
    /// Way in which the interval was found.
    pub method: Method,
    /// True where the change is none of chance: exact, or with an interval that excludes none.
    pub significant: bool,
    /// True of a structure that varies between equal runs.
    pub varies: bool,
    /// Bound on the probability that one run is beyond all of the others by chance, if it is.
    pub rank_bound: Option<f64>,
    /// Values of times, for tests.
    pub samples: Option<Samples>,
}

/// Settings of rows.
#[derive(Clone, Debug, Default)]
pub struct RowOptions {
    /// Confidence of intervals, in (0, 1).
    pub confidence: f64,
    /// Standard deviation of one run as a share, as the user gives it.
    pub noise: Option<f64>,
    /// Learned spreads.
    pub spread: Spread,
    /// Strata, `0-3,8` each.
    pub strata: Vec<String>,
    /// True where times cannot be compared.
    pub no_times: bool,
}

/// Rows of quantities that sides differ in, and those of the whole run, most important first; with the number of call
/// sites that were left out because they belong to different builds.
pub fn rows(base: &[Profile], new: &[Profile], options: &RowOptions) -> (Vec<Row>, u64) {
    let moved = moved(base, new);
    let (old, mut fresh) = (Values::of(base, &options.strata), Values::of(new, &options.strata));
    fresh.rename(&moved);
    let (mut rows, mut unnamed) = (Vec::new(), BTreeSet::new());
    let rebuilt = has_other_program(base, new);
    let keys: BTreeSet<&Key> = old.counts.keys().chain(fresh.counts.keys()).collect();
    for key in keys {
        let (one, other) = (old.counts.get(key), fresh.counts.get(key));
        if is_unknown(key, one.is_some(), other.is_some()) {
            continue;
        }
        if rebuilt && one.is_none() != other.is_none() && is_address(&key.scope) {
            unnamed.insert(&key.scope);
            continue;
        }
        rows.push(of_counts(key, one, other, (base.len(), new.len()), options));
    }
    rows.extend(of_sequences(base, new));
    if !options.no_times {
        for (key, one) in &old.times {
            if let Some(other) = fresh.times.get(key).filter(|other| other.len() == new.len())
                && one.len() == base.len()
            {
                rows.push(of_times(key, one, other, options));
            }
        }
    }
    let explained = explained(&rows);
    rows.sort_by(|a, b| {
        a.order(explained).partial_cmp(&b.order(explained)).expect("no row is without a number")
    });
    (rows, unnamed.len() as u64)
}

/// Values of one side by quantity, one a run.
struct Values {
    counts: BTreeMap<Key, Vec<u64>>,
    times: BTreeMap<Key, Vec<f64>>,
}

impl Values {
    fn of(runs: &[Profile], strata: &[String]) -> Self {
        let mut counts: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        let mut times: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
        let keys: BTreeSet<&Key> = runs.iter().flat_map(|run| run.counts.keys()).collect();
        for key in keys {
            let value = |run: &Profile| run.counts.get(key).copied();
            let known: Vec<u64> = match key.scope {
                // Of the run a missing number is not known, of its parts it is none.
                Scope::Run => runs.iter().filter_map(value).collect(),
                _ => runs.iter().map(|run| value(run).unwrap_or(0)).collect(),
            };
            counts.insert(key.clone(), known);
        }
        for run in runs {
            for (key, &value) in &run.times {
                times.entry(key.clone()).or_default().push(value);
            }
            let strata = strata.iter().map(|ranks| (Scope::Stratum(ranks.clone()), ranks));
            let groups = run.groups.iter().map(|(name, ranks)| (Scope::Group(name.clone()), ranks));
            for (scope, ranks) in strata.chain(groups) {
                let Some((mpi, compute)) = RankSet::parse(ranks).ok().and_then(|set| run.times_of(&set))
                else {
                    continue;
                };
                for (what, value) in [(RunQuantity::MpiTime, mpi), (RunQuantity::ComputeTime, compute)] {
                    times.entry(Key { scope: scope.clone(), what }).or_default().push(value);
                }
            }
        }
        Self { counts, times }
    }

    /// Gives parts of the run other names.
    fn rename(&mut self, names: &BTreeMap<Scope, Scope>) {
        let own = |key: Key| match names.get(&key.scope) {
            Some(scope) => Key { scope: scope.clone(), ..key },
            None => key,
        };
        self.counts =
            std::mem::take(&mut self.counts).into_iter().map(|(key, all)| (own(key), all)).collect();
        self.times = std::mem::take(&mut self.times).into_iter().map(|(key, all)| (own(key), all)).collect();
    }
}

/// True for a quantity that one side does not know.
fn is_unknown(key: &Key, one: bool, other: bool) -> bool {
    key.scope == Scope::Run && key.what != RunQuantity::Steps && !(one && other)
}

fn is_address(scope: &Scope) -> bool {
    matches!(scope, Scope::Site { place, .. } if place.contains("+0x"))
}

/// True where the sides ran programs of other contents.
fn has_other_program(base: &[Profile], new: &[Profile]) -> bool {
    let contents = |runs: &[Profile]| -> BTreeSet<Option<String>> {
        runs.iter().map(|run| run.facts.get(&(FactKind::Program, String::new())).cloned()).collect()
    };
    contents(base) != contents(new)
}

fn of_counts(
    key: &Key,
    one: Option<&Vec<u64>>,
    other: Option<&Vec<u64>>,
    runs: (usize, usize),
    options: &RowOptions,
) -> Row {
    let side = |values: Option<&Vec<u64>>, runs: usize| -> Vec<f64> {
        let none = || if key.scope == Scope::Run { Vec::new() } else { vec![0; runs] };
        values.cloned().unwrap_or_else(none).into_iter().map(|value| value as f64).collect()
    };
    let (one, other) = (side(one, runs.0), side(other, runs.1));
    // How far a number varies that equal runs have shown to vary is not known.
    let learned = options.spread.varies(key);
    let varies = learned || is_varied(&one) || is_varied(&other);
    let samples = Samples::new(one.clone(), other.clone(), scale(key), Noise::Runs);
    let (base, new) = (middle(&one), middle(&other));
    let differs = base != new;
    Row {
        key: key.clone(),
        base,
        new,
        ranges: [range(&one), range(&other)],
        change: samples.change().filter(|_| base.is_some() && new.is_some()),
        interval: None,
        method: Method::Exact,
        significant: differs && !learned && (!varies || apart(&one, &other)),
        varies,
        rank_bound: None,
        samples: None,
    }
}

/// Ranks whose sequence of calls is another than in the base's first run.
fn of_sequences(base: &[Profile], new: &[Profile]) -> Option<Row> {
    let first = base.first()?;
    let ranks = first.identity.ranks as usize;
    let known = |run: &Profile| run.sequences.len() == ranks && ranks > 0;
    if !base.iter().chain(new).all(known) {
        return None;
    }
    let differing = |run: &Profile| {
        first.sequences.iter().filter(|(rank, print)| run.sequences.get(rank) != Some(print)).count() as f64
    };
    let (one, other): (Vec<f64>, Vec<f64>) =
        (base.iter().map(differing).collect(), new.iter().map(differing).collect());
    let varies = is_varied(&one);
    let new = middle(&other);
    Some(Row {
        key: Key::run(RunQuantity::Sequence),
        base: Some(0.0),
        new,
        ranges: [range(&one), range(&other)],
        change: new.filter(|&new| new == 0.0),
        interval: None,
        method: Method::Exact,
        significant: new > Some(0.0) && !varies,
        varies,
        rank_bound: None,
        samples: None,
    })
}

fn of_times(key: &Key, one: &[f64], other: &[f64], options: &RowOptions) -> Row {
    let noise = match options.noise {
        Some(noise) => Noise::Given(noise),
        None => options.spread.noise(key),
    };
    let samples = Samples::new(one.to_vec(), other.to_vec(), scale(key), noise);
    let interval =
        samples.interval(options.confidence).filter(|(low, high)| low.is_finite() && high.is_finite());
    Row {
        key: key.clone(),
        base: samples.base(),
        new: samples.new_value(),
        ranges: [range(one), range(other)],
        change: samples.change(),
        interval,
        method: samples.method,
        significant: interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0),
        varies: false,
        rank_bound: samples.rank_bound().filter(|_| samples.method == Method::Prediction),
        samples: Some(samples),
    }
}

fn middle(values: &[f64]) -> Option<f64> {
    super::bootstrap::median(values)
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    Some((least, values.iter().copied().fold(least, f64::max)))
}

fn is_varied(values: &[f64]) -> bool {
    range(values).is_some_and(|(least, most)| least != most)
}

/// True where no value of one side is within the range of the other.
fn apart(one: &[f64], other: &[f64]) -> bool {
    match (range(one), range(other)) {
        (Some(one), Some(other)) => one.1 < other.0 || other.1 < one.0,
        _ => true,
    }
}

/// Most time by which ranks of a part compute longer, nanoseconds: others may wait as long in MPI for it.
fn explained(rows: &[Row]) -> f64 {
    let computes = rows.iter().filter(|row| row.key.what == RunQuantity::ComputeTime && row.significant);
    computes.filter_map(Row::difference).fold(0.0, f64::max)
}

impl Row {
    /// New less base, in the quantity's unit.
    pub fn difference(&self) -> Option<f64> {
        Some(self.new? - self.base?)
    }

    /// Weight in the order of rows, nanoseconds of a rank: time in MPI counts beyond what others compute longer.
    fn weight(&self, explained: f64) -> f64 {
        let difference = self.difference().unwrap_or(0.0);
        match self.key.what {
            RunQuantity::MpiTime if difference > 0.0 => (difference - explained).max(0.0),
            _ => difference.abs(),
        }
    }

    /// Place among rows, ascending: clear changes of parts of the run, changed structure, the whole run, the rest.
    fn order(&self, explained: f64) -> (u8, f64, &Key) {
        let whole = self.key.scope == Scope::Run;
        let relative = -self.change.map_or(f64::MAX, f64::abs);
        match self.key.what.kind() {
            Kind::Time if whole => (2, 0.0, &self.key),
            // Counters have units of their own.
            Kind::Time if self.significant && self.key.what.unit() == Unit::Nanoseconds => {
                (0, -self.weight(explained), &self.key)
            }
            Kind::Time => (4, -self.weight(explained), &self.key),
            Kind::Structure if self.base != self.new => (1, relative, &self.key),
            Kind::Structure if whole => (3, 0.0, &self.key),
            Kind::Structure => (5, 0.0, &self.key),
        }
    }
}
