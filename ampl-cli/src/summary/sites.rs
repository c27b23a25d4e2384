//! Where MPI time goes.

use std::collections::HashMap;
use std::fmt::Write;

use ampl_trace::model::{Site, call_path};
use ampl_trace::{RankTrace, Trace};

use super::label::{Detail, NOWHERE, Place};
use super::title;
use crate::human::{count, cut, digits, duration, percent};
use crate::symbols::Symbols;

/// Columns of a function and its call site.
const NAME: usize = 52;

/// A call site over all ranks.
#[derive(Debug, Default)]
struct Total {
    calls: u64,
    time_ns: f64,
    /// Time of the rank with the most.
    most_ns: f64,
}

/// Number of a place; none for calls beyond the table of sites.
type Key = Option<usize>;

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
pub(super) fn write(out: &mut String, trace: &Trace, most: usize) {
    let mut places = Places::default();
    let totals = totals(trace, &mut places);
    let all: f64 = totals.values().map(|total| total.time_ns).sum();
    let mut top: Vec<(Key, &Total)> = totals.iter().map(|(&key, total)| (key, total)).collect();
    top.sort_by(|a, b| b.1.time_ns.total_cmp(&a.1.time_ns).then_with(|| a.0.cmp(&b.0)));
    top.truncate(most);
    if top.is_empty() {
        return;
    }
    let whose = match trace.ranks.len() as u64 {
        all if all == u64::from(trace.run.ranks) => "every call of every rank".into(),
        some => format!("the {} ranks read", count(some)),
    };
    let head = cut(&format!("Where MPI time goes (exact: {whose})"), NAME + 2);
    let line = |name: &str, [calls, share, mean, ratio]: [&str; 4]| {
        format!("{name} {calls:>12} {share:>8} {mean:>8} {ratio:>13}")
    };
    title(
        out,
        &line(
            &format!("{head:<width$}", width = NAME + 2),
            ["calls", "MPI time", "per call", "rank max/mean"],
        ),
    );
    let keys: Vec<Key> = top.iter().map(|&(key, _)| key).collect();
    for (name, (_, total)) in labels(&keys, &mut places).iter().zip(top) {
        let numbers = [
            &count(total.calls),
            // Local calls are counted and not timed.
            &if total.time_ns > 0.0 { share(total.time_ns, all) } else { "-".into() },
            &if total.time_ns > 0.0 {
                duration(total.time_ns / total.calls.max(1) as f64)
            } else {
                "-".into()
            },
            &imbalance(total, trace.ranks.len()),
        ];
        let _ = writeln!(out, "{}", line(&format!("  {name:<NAME$}"), numbers.map(String::as_str)));
    }
}

/// `part` of `all` in percent; less than anyone asks for is not told in digits.
fn share(part: f64, all: f64) -> String {
    match if all > 0.0 { part / all } else { 0.0 } {
        share if share > 0.0 && share < 1e-4 => "< 0.01 %".into(),
        share => percent(share),
    }
}

/// Most time of a rank over the mean of all ranks; ranks that never came here count.
fn imbalance(total: &Total, ranks: usize) -> String {
    let mean = total.time_ns / ranks.max(1) as f64;
    if mean > 0.0 { digits(total.most_ns / mean) } else { "-".into() }
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

fn totals<'a>(trace: &'a Trace, places: &mut Places<'a>) -> HashMap<Key, Total> {
    let mut totals: HashMap<Key, Total> = HashMap::new();
    for rank in &trace.ranks {
        // Threads of a rank have entries of their own.
        let mut own: HashMap<Key, f64> = HashMap::new();
        for entry in &rank.aggregates {
            // The entry that sites beyond the table share knows its latest function only.
            let key = entry.site.map(|site| places.number(entry.function, path(rank, site)));
            let total = totals.entry(key).or_default();
            total.calls += entry.calls;
            total.time_ns += entry.time_ns;
            *own.entry(key).or_default() += entry.time_ns;
        }
        for (key, time_ns) in own {
            let total = totals.entry(key).or_default();
            total.most_ns = total.most_ns.max(time_ns);
        }
    }
    totals
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

/// Where calls from `site` return to: modules and offsets, innermost first.
fn path(rank: &RankTrace, site: u32) -> Path<'_> {
    let address = |site: Site| {
        let module = rank.modules.get(site.module as usize).filter(|module| !module.is_empty());
        (module.map_or(NOWHERE.0, String::as_str), site.offset)
    };
    let path: Path<'_> = call_path(&rank.sites, site).map(address).collect();
    if path.is_empty() { vec![NOWHERE] } else { path }
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::ids;

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
