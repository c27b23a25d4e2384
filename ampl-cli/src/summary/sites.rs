//! Where MPI time goes.

use std::collections::HashMap;
use std::fmt::Write;

use ampl_core::config::SiteTrace;
use ampl_core::plan::Plan;
use ampl_trace::Trace;
use ampl_trace::totals::{SEVERAL, Total};

use super::label::{Detail, NOWHERE, Place};
use super::title;
use crate::coverage::{Coverage, Extent};
use crate::efficiency::measured_share;
use crate::human::{count, cut, digits, duration, percent};
use crate::pauses;
use crate::symbols::Symbols;

/// Columns of a function and its call site.
const NAME: usize = 48;

/// Number of a place; none for calls beyond the table of sites.
type Key = Option<usize>;

/// What there is of a place, of one address and path each.
type Parts<'a> = Vec<&'a Total>;

/// Modules and offsets that calls return to, innermost first.
type Path<'a> = Vec<(&'a str, u64)>;

/// The places where MPI functions are called. One line has several addresses where it was inlined; that is one
/// place, as it is for markers and in JSON.
#[derive(Default)]
struct Places<'a> {
    symbols: Symbols,
    places: Vec<Place<'a>>,
    by_address: HashMap<(u16, Path<'a>), usize>,
    by_name: HashMap<(u16, Vec<String>), usize>,
}

/// Writes at most `most` places, those with the most time first.
pub(super) fn write(out: &mut String, trace: &Trace, plan: Option<&Plan>, most: usize) {
    let mut places = Places::default();
    let totals = totals(trace, &mut places);
    let all = totals.values().map(time_ns).sum();
    let mut top: Vec<(Key, &Parts<'_>)> = totals.iter().map(|(&key, parts)| (key, parts)).collect();
    top.sort_by(|a, b| time_ns(b.1).total_cmp(&time_ns(a.1)).then_with(|| a.0.cmp(&b.0)));
    top.truncate(most);
    if top.is_empty() {
        return;
    }
    let whose = match trace.ranks.len() as u64 {
        all if all == u64::from(trace.run.ranks) => "all ranks".into(),
        some => format!("the {} ranks read", count(some)),
    };
    let left_out = |plan: &Plan| plan.config.sites.iter().any(|policy| policy.trace == SiteTrace::Off);
    let basis = match plan {
        Some(plan) if left_out(plan) => "traced calls",
        _ if !pauses::of(trace).is_empty() => "while measured",
        _ => "exact",
    };
    // Of calls that were only counted nobody knows the time: which place has most may be another.
    let measured = measured_share(trace);
    let extent = Coverage::extent_of(measured);
    let head = match extent {
        Extent::Whole => format!("Where MPI time goes ({basis}: {whose})"),
        Extent::Part => format!("Where MPI time goes (in {} of the time)", percent(measured)),
        Extent::Little => format!("Calls while measured ({} of the time)", percent(measured)),
    };
    let head = cut(&head, NAME + 2);
    let line = |name: &str, [calls, share, mean, longest, worst]: [&str; 5]| {
        format!("{name} {calls:>10} {share:>8} {mean:>8} {longest:>7} {worst:>12}")
    };
    title(
        out,
        &line(
            &format!("{head:<width$}", width = NAME + 2),
            ["calls", "MPI time", "per call", "longest", "worst rank"],
        ),
    );
    let keys: Vec<Key> = top.iter().map(|&(key, _)| key).collect();
    for (name, (_, parts)) in labels(&keys, &mut places).iter().zip(top) {
        let mut numbers = numbers(parts, all, trace.ranks.len());
        if extent == Extent::Little {
            numbers[1] = "-".into();
        }
        let _ =
            writeln!(out, "{}", line(&format!("  {name:<NAME$}"), numbers.each_ref().map(String::as_str)));
    }
}

fn time_ns(parts: &Parts<'_>) -> f64 {
    parts.iter().map(|total| total.time_ns as f64).sum()
}

/// What stands beside a place's name.
fn numbers(parts: &Parts<'_>, all: f64, ranks: usize) -> [String; 5] {
    let calls: u64 = parts.iter().map(|total| total.calls).sum();
    let time = time_ns(parts);
    let mut numbers = [count(calls), "-".into(), "-".into(), "-".into(), "-".into()];
    // Local calls are counted and not timed.
    if time > 0.0 {
        let longest = parts.iter().map(|total| total.longest.ns).max().unwrap_or(0);
        numbers[1] = share(time, all);
        numbers[2] = duration(time / calls.max(1) as f64);
        numbers[3] = duration(longest as f64);
        numbers[4] = worst(parts, time / ranks.max(1) as f64);
    }
    numbers
}

/// `part` of `all` in percent; less than anyone asks for is not told in digits.
fn share(part: f64, all: f64) -> String {
    match if all > 0.0 { part / all } else { 0.0 } {
        share if share > 0.0 && share < 1e-4 => "< 0.01 %".into(),
        share => percent(share),
    }
}

/// The rank with the most time, and that over the mean of all ranks; ranks that never came here count. Where a place
/// has several addresses the most at one of them is known, and some rank may have more at all.
fn worst(parts: &Parts<'_>, mean: f64) -> String {
    let most = parts.iter().map(|total| total.most).max_by_key(|most| most.ns).unwrap_or_default();
    let least = if parts.len() > 1 { ">" } else { "" };
    format!("{} ({least}{}x)", most.rank, digits(most.ns as f64 / mean))
}

/// `FUNCTION @ PLACE` of each, at most [`NAME`] columns; what would look the same gets more detail.
fn labels(keys: &[Key], places: &mut Places) -> Vec<String> {
    let mut labels = vec![String::new(); keys.len()];
    for detail in [Detail::Function, Detail::Offset, Detail::Address] {
        let before = labels.clone();
        for (label, &key) in labels.iter_mut().zip(keys) {
            if before.iter().filter(|other| *other == label).count() > 1 || label.is_empty() {
                let text = key.map(|number| places.places[number].label(&mut places.symbols, detail, NAME));
                *label = cut(text.as_deref().unwrap_or("(several) @ (further sites)"), NAME);
            }
        }
    }
    labels
}

fn totals<'a>(trace: &'a Trace, places: &mut Places<'a>) -> HashMap<Key, Parts<'a>> {
    let mut totals: HashMap<Key, Parts<'a>> = HashMap::new();
    for (function, path, total) in trace.totals.places() {
        let key = (function != SEVERAL).then(|| places.number(function, known(path)));
        totals.entry(key).or_default().push(total);
    }
    totals
}

/// `path` with what stands for places that nobody knows.
fn known(mut path: Path<'_>) -> Path<'_> {
    for (module, _) in &mut path {
        if module.is_empty() {
            *module = NOWHERE.0;
        }
    }
    if path.is_empty() { vec![NOWHERE] } else { path }
}

impl<'a> Places<'a> {
    /// The number of the place where calls of `function` return to these modules and offsets, innermost first.
    fn number(&mut self, function: u16, path: Path<'a>) -> usize {
        let Self { symbols, places, by_address, by_name } = self;
        if let Some(&number) = by_address.get(&(function, path.clone())) {
            return number;
        }
        let names = path.iter().map(|&(module, offset)| symbols.name(module, offset)).collect();
        let number = *by_name.entry((function, names)).or_insert(places.len());
        let (&(module, offset), callers) = path.split_first().unwrap_or((&NOWHERE, &[]));
        if number == places.len() {
            let (line, callers) = (symbols.line(module, offset), callers.to_vec());
            places.push(Place { function, line, addresses: Vec::new(), callers });
        }
        places[number].addresses.push((module, offset));
        by_address.insert((function, path), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::ids;
    use ampl_trace::totals::Extreme;

    use super::*;

    #[test]
    fn small_shares_stay_narrow() {
        assert_eq!(
            (share(1.0, 4.0), share(0.0, 4.0), share(0.0, 0.0)),
            ("25 %".into(), "0 %".into(), "0 %".into())
        );
        assert_eq!(share(1.0, 1e6), "< 0.01 %");
    }

    #[test]
    fn a_place_tells_its_longest_call_and_its_worst_rank() {
        let at = |ns, rank| Extreme { ns, rank };
        let one =
            Total { calls: 4, time_ns: 4000, longest: at(2000, 0), most: at(3000, 1), ..Total::default() };
        assert_eq!(
            numbers(&vec![&one], 8000.0, 2),
            ["4", "50 %", "1 us", "2 us", "1 (1.50x)"].map(String::from)
        );
        // At two addresses: rank 0 may have more than rank 1.
        let other =
            Total { calls: 6, time_ns: 4000, longest: at(2500, 0), most: at(2500, 0), ..Total::default() };
        let both = numbers(&vec![&one, &other], 8000.0, 2);
        assert_eq!(both, ["10", "100 %", "800 ns", "2.50 us", "1 (>0.750x)"].map(String::from));
        let counted = Total { calls: 7, ..Total::default() };
        assert_eq!(numbers(&vec![&counted], 8000.0, 2), ["7", "-", "-", "-", "-"].map(String::from));
    }

    #[test]
    fn addresses_of_one_name_are_one_place() {
        let mut places = Places::default();
        let addresses = [("/a/app", 16), ("/a/app", 32), ("/b/app", 16), ("/a/app", 16)];
        assert_eq!(addresses.map(|address| places.number(0, vec![address])), [0, 1, 0, 0]);
        assert_eq!(places.number(1, vec![("/a/app", 16)]), 2);
        assert_eq!(places.places[0].addresses, [("/a/app", 16), ("/b/app", 16)]);
        let labels = labels(&[Some(1), None], &mut places);
        assert!(
            labels[0].ends_with(" @ app+0x20") && labels[1] == "(several) @ (further sites)",
            "{labels:?}"
        );
    }

    #[test]
    fn calls_of_one_function_do_not_look_the_same() {
        let (libc, atoi, _) = crate::symbols::tests::atoi();
        let mut places = Places::default();
        let keys = [(0, &*libc, atoi + 4), (0, &libc, atoi + 9), (0, "/a/app", 9), (1, &libc, atoi + 9)]
            .map(|(function, module, offset)| Some(places.number(function, vec![(module, offset)])));
        let mut seen = |keys: &[Key]| -> Vec<String> {
            let labels = labels(keys, &mut places);
            labels.iter().map(|label| label.split_once(" @ ").unwrap().1.to_owned()).collect()
        };
        assert_eq!(seen(&keys[..3]), ["atoi+0x4", "atoi+0x9", "app+0x9"]);
        assert_eq!(seen(&keys[1..3]), ["atoi", "app+0x9"]);
        // The function of MPI tells them apart, too.
        assert_eq!(seen(&[keys[0], keys[3]]), ["atoi", "atoi"]);
    }

    #[test]
    fn ways_to_one_call_are_two_places() {
        let (libc, atoi, _) = crate::symbols::tests::atoi();
        let mut places = Places::default();
        let send = ids::MPI_SEND.0;
        let call = ("/a/app", 16);
        let keys = [&[call][..], &[call, (&libc, atoi + 4)], &[call, (&libc, atoi + 4), ("/a/app", 99)]]
            .map(|path| Some(places.number(send, path.to_vec())));
        assert_eq!(keys, [Some(0), Some(1), Some(2)]);
        let labels = labels(&keys, &mut places);
        let place = |label: &String| label.split_once(" @ ").unwrap().1.to_owned();
        assert_eq!(
            labels.iter().map(place).collect::<Vec<_>>(),
            ["app+0x10", "app+0x10 < atoi", "app+0x10 < atoi < app+0x63"]
        );
    }
}
