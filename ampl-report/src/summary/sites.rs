//! Call sites with the most MPI time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ampl_analysis::calls::{
    Late, LateRanks, Number, Parts, Places, Unreturned, recorded, recorded_calls, time_ns, unreturned,
};
use ampl_analysis::coverage::{Coverage, Extent};
use ampl_analysis::efficiency::{known_mpi_share, measured_share};
use ampl_analysis::pauses;
use ampl_core::config::SiteTrace;
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::plan::Plan;
use ampl_reader::Trace;
use ampl_reader::totals::Known;

use crate::calls;
use crate::calls::label::{Detail, has_several_callers, label};
use crate::human::{count, digits, duration, percent, plural};
use crate::layout::{Page, paragraph, title};

/// Least columns of a function and its call site, as long as a column of numbers can be left out for it.
const NAME: usize = 38;
/// The columns of numbers: titles and widths. Columns that may be left out come last here.
const NUMBERS: [(&str, usize); 5] =
    [("calls", 10), ("MPI time", 8), ("per call", 8), ("longest", 7), ("which rank", 16)];
/// Columns that are left out first where there is little room.
const SPARE: [usize; 2] = [3, 2];

/// Layout of the table.
struct Layout {
    name: usize,
    shown: Vec<usize>,
}

impl Layout {
    /// Layout for a line of `columns`.
    fn of(columns: usize) -> Self {
        let mut shown: Vec<usize> = (0..NUMBERS.len()).collect();
        let name = |shown: &[usize]| {
            columns.saturating_sub(2 + shown.iter().map(|&at| NUMBERS[at].1 + 1).sum::<usize>())
        };
        for spare in SPARE {
            if name(&shown) < NAME {
                shown.retain(|&at| at != spare);
            }
        }
        Self { name: name(&shown), shown }
    }

    /// A line of the table.
    fn line(&self, name: &str, numbers: [&str; 5]) -> String {
        let mut line = format!("{name:<width$}", width = self.name + 2);
        for &at in &self.shown {
            let _ = write!(line, " {:>width$}", numbers[at], width = NUMBERS[at].1);
        }
        line
    }
}

/// Words behind the name of calls that have not returned.
const UNRETURNED: &str = ", not returned";

/// Calls of one line of the table.
#[derive(Clone, Copy)]
enum Calls<'a> {
    Returned(&'a Parts<'a>),
    /// Calls that had not returned at the end of the observation.
    Unreturned(&'a Unreturned),
}

impl Calls<'_> {
    fn time_ns(&self) -> f64 {
        match self {
            Self::Returned(parts) => time_ns(parts),
            Self::Unreturned(open) => open.ns as f64,
        }
    }

    fn parts(&self) -> &[Known<'_>] {
        match self {
            Self::Returned(parts) => parts,
            Self::Unreturned(_) => &[],
        }
    }
}

/// Writes at most `most` places, those with the most time first.
pub(super) fn write(out: &mut Page, trace: &Trace, plan: Option<&Plan>, most: usize) {
    let mut places = Places::default();
    let parts = places.parts(trace);
    let open = unreturned(trace, &mut places);
    let returned = parts.iter().map(|(&key, parts)| (key, Calls::Returned(parts)));
    let mut top: Vec<(Number, Calls<'_>)> =
        returned.chain(open.iter().map(|(&key, open)| (key, Calls::Unreturned(open)))).collect();
    let all = top.iter().map(|(_, calls)| calls.time_ns()).sum();
    top.sort_by(|a, b| b.1.time_ns().total_cmp(&a.1.time_ns()).then_with(|| a.0.cmp(&b.0)));
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
        _ if !trace.complete => "until the end of the observation",
        _ => "exact",
    };
    let layout = Layout::of(out.width);
    // Calls that were only counted have no time: another place may have most.
    let measured = measured_share(trace);
    let extent = Coverage::extent_of(measured.min(known_mpi_share(trace)));
    let mut head = match extent {
        Extent::Whole => format!("Where MPI time goes ({basis}: {whose})"),
        Extent::Part => format!("Where MPI time goes (in {} of the time)", percent(measured)),
        Extent::Little if Coverage::extent_of(measured) == Extent::Whole => {
            "Calls whose time is known".into()
        }
        Extent::Little => format!("Calls while measured ({} of the time)", percent(measured)),
    };
    if head.chars().count() > layout.name + 2 {
        title(out, &head);
        head = String::new();
    } else {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", layout.line(&head, NUMBERS.map(|(title, _)| title)));
    let mut keys: Vec<Number> = top.iter().map(|&(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    let room = layout.name.saturating_sub(if open.is_empty() { 0 } else { UNRETURNED.chars().count() });
    let labels: BTreeMap<Number, String> =
        keys.iter().copied().zip(labels(&keys, &mut places, room, out.width)).collect();
    let late = late(trace, &top);
    for ((key, calls), late) in top.iter().zip(late) {
        let name = labels.get(key).cloned().unwrap_or_default();
        let (name, mut numbers) = match calls {
            Calls::Returned(parts) => (name, numbers(parts, all, trace.ranks.len(), &late)),
            Calls::Unreturned(open) => (name + UNRETURNED, open_numbers(open, all)),
        };
        if extent == Extent::Little {
            numbers[1] = "-".into();
        }
        // A name that is too long for its column has a line of its own.
        let mut lines = vec![format!("  {name}")];
        if name.chars().count() > layout.name {
            lines.push(String::new());
        }
        let last = lines.pop().unwrap_or_default();
        lines.push(layout.line(&last, numbers.each_ref().map(String::as_str)));
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
    }
    hint(out, plan, &keys, &mut places);
}

/// Writes how to see the callers of wrappers that have several.
fn hint(out: &mut Page, plan: Option<&Plan>, keys: &[Number], places: &mut Places<'_>) {
    let depth = plan.map_or(1, |plan| plan.config.trace.call_path_depth);
    let Places { places, symbols, .. } = places;
    let mut shown = keys.iter().flatten().map(|&number| &places[number]);
    if shown.any(|place| has_several_callers(place, symbols)) {
        let text = format!("trace.call_path_depth = {} tells callers apart", depth.max(1) + 2);
        paragraph(out, "several callers", &text);
    }
}

/// Late ranks at each of these places.
fn late(trace: &Trace, top: &[(Number, Calls<'_>)]) -> Vec<Late> {
    let waits = |function: u16| usize::from(function) < FUNCTION_COUNT && Function(function).waits_for_all();
    let functions = top.iter().flat_map(|(_, calls)| calls.parts().iter().map(|part| part.function));
    let functions: BTreeSet<u16> = functions.filter(|&function| waits(function)).collect();
    let calls = recorded_calls(trace, |function| functions.contains(&function)).unwrap_or_default();
    let late = LateRanks::of(trace);
    let of = |parts: &[Known<'_>]| late.at(parts, &recorded(parts, &calls));
    top.iter().map(|(_, calls)| of(calls.parts())).collect()
}

/// Numbers of calls that have not returned.
fn open_numbers(open: &Unreturned, all: f64) -> [String; 5] {
    let which = match open.ranks.to_string() {
        one if open.ranks.len() == 1 => format!("rank {one}"),
        some if some.chars().count() <= 10 => format!("ranks {some}"),
        _ => plural(open.ranks.len(), "rank"),
    };
    let longest = duration(open.longest.ns as f64);
    [count(open.calls), share(open.ns as f64, all), "-".into(), longest, which]
}

/// Numbers beside a place's name.
fn numbers(parts: &Parts<'_>, all: f64, ranks: usize, late: &Late) -> [String; 5] {
    let calls: u64 = parts.iter().map(|part| part.total.calls).sum();
    let time = time_ns(parts);
    let mut numbers = [count(calls), "-".into(), "-".into(), "-".into(), "-".into()];
    // Local calls are counted and not timed.
    if time > 0.0 {
        let longest = parts.iter().map(|part| part.total.longest.ns).max().unwrap_or(0);
        numbers[1] = share(time, all);
        numbers[2] = duration(time / calls.max(1) as f64);
        numbers[3] = duration(longest as f64);
        numbers[4] = match late {
            Late::Nobody => "nobody is late".into(),
            late => calls::late(late).unwrap_or_else(|| most(parts, time / ranks.max(1) as f64)),
        };
    }
    numbers
}

/// `part` of `all` in percent; very small shares are not printed in digits.
fn share(part: f64, all: f64) -> String {
    match if all > 0.0 { part / all } else { 0.0 } {
        share if share > 0.0 && share < 1e-4 => "< 0.01 %".into(),
        share => percent(share),
    }
}

/// The rank with the most time, and its time over the mean of all ranks; ranks that never called here count. Where a
/// place has several addresses only the greatest at one of them is known, and another rank may have more in all.
fn most(parts: &Parts<'_>, mean: f64) -> String {
    let most = parts.iter().map(|part| part.total.most).max_by_key(|most| most.ns).unwrap_or_default();
    let least = if parts.len() > 1 { ">" } else { "" };
    format!("most {} ({least}{}x)", most.rank, digits(most.ns as f64 / mean))
}

/// `FUNCTION @ PLACE` of each, in `room` of `width` columns where names can be shortened so far and callers are not
/// shown; equal labels get more detail.
fn labels(keys: &[Number], places: &mut Places<'_>, room: usize, width: usize) -> Vec<String> {
    let whole = (width - 2).max(room);
    let mut labels = vec![String::new(); keys.len()];
    for detail in [Detail::Function, Detail::Offset, Detail::Address] {
        let before = labels.clone();
        for (own, &key) in labels.iter_mut().zip(keys) {
            if before.iter().filter(|other| *other == own).count() > 1 || own.is_empty() {
                *own = match key {
                    None => "(several) @ (further sites)".into(),
                    Some(number) => {
                        let (place, symbols) = (&places.places[number], &mut places.symbols);
                        let full = label(place, symbols, detail, whole);
                        let short = label(place, symbols, detail, room);
                        let fits = short.chars().count() <= room && !full.contains(" < ");
                        if fits { short } else { full }
                    }
                };
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::ids;
    use ampl_reader::totals::{Extreme, Total};
    use ampl_testkit::synthetic::Synthetic;

    use super::*;
    use crate::layout::WIDTH;

    fn part(total: &Total) -> Known<'_> {
        Known { function: ids::MPI_RECV.0, path: Vec::new(), total, spread: None, callers: None }
    }

    #[test]
    fn columns_are_left_out_before_names_are() {
        let shown = |columns: usize| (Layout::of(columns).name, Layout::of(columns).shown.len());
        assert_eq!([100, 140, 80, 60].map(shown), [(44, 5), (84, 5), (41, 3), (21, 3)]);
        for columns in 60..200 {
            assert_eq!(
                Layout::of(columns).line("x", NUMBERS.map(|(title, _)| title)).chars().count(),
                columns
            );
        }
    }

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
            numbers(&vec![part(&one)], 8000.0, 2, &Late::Unknown),
            ["4", "50 %", "1 us", "2 us", "most 1 (1.50x)"].map(String::from)
        );
        // At two addresses: rank 0 may have more than rank 1.
        let other =
            Total { calls: 6, time_ns: 4000, longest: at(2500, 0), most: at(2500, 0), ..Total::default() };
        let both = numbers(&vec![part(&one), part(&other)], 8000.0, 2, &Late::Unknown);
        assert_eq!(both, ["10", "100 %", "800 ns", "2.50 us", "most 1 (>0.750x)"].map(String::from));
        let counted = Total { calls: 7, ..Total::default() };
        assert_eq!(
            numbers(&vec![part(&counted)], 8000.0, 2, &Late::Unknown),
            ["7", "-", "-", "-", "-"].map(String::from)
        );
    }

    #[test]
    fn addresses_of_one_name_are_one_place() {
        let mut places = Places::default();
        let addresses = [("/a/app", 16), ("/a/app", 32), ("/b/app", 16), ("/a/app", 16)];
        assert_eq!(addresses.map(|address| places.number(0, vec![address])), [0, 1, 0, 0]);
        assert_eq!(places.number(1, vec![("/a/app", 16)]), 2);
        assert_eq!(places.places[0].addresses, [("/a/app", 16), ("/b/app", 16)]);
        let labels = labels(&[Some(1), None], &mut places, 44, WIDTH);
        assert!(
            labels[0].ends_with(" @ app+0x20") && labels[1] == "(several) @ (further sites)",
            "{labels:?}"
        );
    }

    #[test]
    fn calls_of_one_function_do_not_look_the_same() {
        let (libc, atoi, _) = ampl_testkit::symbols::atoi();
        let mut places = Places::default();
        let keys = [(0, &*libc, atoi + 4), (0, &libc, atoi + 9), (0, "/a/app", 9), (1, &libc, atoi + 9)]
            .map(|(function, module, offset)| Some(places.number(function, vec![(module, offset)])));
        let mut seen = |keys: &[Number]| -> Vec<String> {
            let labels = labels(keys, &mut places, 44, WIDTH);
            labels.iter().map(|label| label.split_once(" @ ").unwrap().1.to_owned()).collect()
        };
        assert_eq!(seen(&keys[..3]), ["atoi+0x4", "atoi+0x9", "app+0x9"]);
        assert_eq!(seen(&keys[1..3]), ["atoi", "app+0x9"]);
        // The function of MPI tells them apart, too.
        assert_eq!(seen(&[keys[0], keys[3]]), ["atoi", "atoi"]);
    }

    #[test]
    fn a_wrapper_of_several_callers_has_a_hint() {
        let (libc, atoi, _) = ampl_testkit::symbols::atoi();
        let hinted = |wrapper, several, config: &str| {
            let mut places = Places::default();
            let key = Some(places.number(ids::MPI_SEND.0, vec![(&*libc, atoi + 4)]));
            places.places[0].common_callers = Some((Vec::new(), several));
            places.places[0].wrapper = wrapper;
            let plan = Synthetic { config: config.into(), ..Synthetic::default() }.plan();
            let mut out = Page::new(WIDTH);
            hint(&mut out, Some(&plan), &[None, key], &mut places);
            out.into_text()
        };
        let text = |depth: u32| {
            format!("  several callers     trace.call_path_depth = {depth} tells callers apart\n")
        };
        assert_eq!(hinted(Some(0), true, ""), text(3));
        assert_eq!(hinted(Some(0), true, "[trace]\ncall_path_depth = 4\n"), text(6));
        assert_eq!([hinted(None, true, ""), hinted(Some(0), false, "")], ["", ""]);
    }

    #[test]
    fn ways_to_one_call_are_two_places() {
        let (libc, atoi, _) = ampl_testkit::symbols::atoi();
        let mut places = Places::default();
        let send = ids::MPI_SEND.0;
        let call = ("/a/app", 16);
        let keys = [&[call][..], &[call, (&libc, atoi + 4)], &[call, (&libc, atoi + 4), ("/a/app", 99)]]
            .map(|path| Some(places.number(send, path.to_vec())));
        assert_eq!(keys, [Some(0), Some(1), Some(2)]);
        let labels = labels(&keys, &mut places, 44, WIDTH);
        let place = |label: &String| label.split_once(" @ ").unwrap().1.to_owned();
        assert_eq!(
            labels.iter().map(place).collect::<Vec<_>>(),
            ["app+0x10", "app+0x10 < atoi", "app+0x10 < atoi < app+0x63"]
        );
    }
}
