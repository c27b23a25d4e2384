//! Visits of regions: how often, how long, and how long without the regions and calls of MPI in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ampl_reader::selection::Selection;
use ampl_reader::sites::Symbols;
use ampl_reader::{Event, Run};
use ampl_trace::regions::Edge;
use ampl_trace::structure::RankGroup;
use ampl_trace::time_index::Ended;
use rustc_hash::FxHashMap;

use super::stored::Stored;

/// Visits of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// Number of them that end in the part; of the whole run, also of those that end with the record.
    pub visits: u64,
    /// Time in them as far as it lies in the part, nanoseconds; of visits in each other, that of the outer one.
    pub inclusive_ns: u64,
    /// The same without regions and calls of MPI in them.
    pub exclusive_ns: u64,
    /// Visits whose begin or end has no time: they are in neither.
    pub untimed: u64,
    /// Visits in which something has no time.
    pub partly_timed: u64,
}

impl Visits {
    fn add(&mut self, other: Ended) {
        self.visits = self.visits.saturating_add(other.visits);
        self.inclusive_ns = self.inclusive_ns.saturating_add(other.inclusive_ns);
        self.exclusive_ns = self.exclusive_ns.saturating_add(other.exclusive_ns);
    }
}

/// A visit that has not ended.
struct Open {
    name: Arc<str>,
    begin_ns: Option<i64>,
    /// Time of regions and calls in it.
    inner_ns: u64,
    /// True where all of these have times.
    is_timed: bool,
}

/// Regions of a rank, walked through in the order of its events.
struct Walk<'a> {
    selection: &'a Selection,
    open: Vec<Open>,
    found: &'a mut BTreeMap<Arc<str>, Visits>,
}

impl Walk<'_> {
    /// Notes what lies in the innermost visit; without a time it is not known how much.
    fn inside(&mut self, nanos: Option<u64>) {
        let Some(open) = self.open.last_mut() else { return };
        match nanos {
            Some(nanos) => open.inner_ns = open.inner_ns.saturating_add(nanos),
            None => open.is_timed = false,
        }
    }

    /// Ends the innermost visit.
    fn end(&mut self, end_ns: Option<i64>) {
        let Some(open) = self.open.pop() else { return };
        let recurs = self.open.iter().any(|outer| outer.name == open.name);
        let times = open.begin_ns.zip(end_ns);
        let nanos = times.map(|(begin_ns, end_ns)| self.selection.overlap_ns(begin_ns, end_ns));
        self.inside(nanos);
        let sums = self.found.entry(open.name).or_default();
        let cuts = self.selection.cuts_time();
        sums.visits += u64::from(!cuts || end_ns.is_some_and(|end_ns| self.selection.has(end_ns)));
        let Some(nanos) = nanos else {
            sums.untimed += 1;
            return;
        };
        if !recurs {
            sums.inclusive_ns = sums.inclusive_ns.saturating_add(nanos);
        }
        sums.exclusive_ns = sums.exclusive_ns.saturating_add(nanos.saturating_sub(open.inner_ns));
        sums.partly_timed += u64::from(!open.is_timed && nanos > 0);
    }

    fn event(&mut self, event: &Event, name: impl FnOnce() -> Arc<str>) {
        match event {
            Event::Call(call) => {
                let timed = call.timed.and_then(|timed| Some((timed.start_ns, timed.duration_ns?)));
                self.inside(timed.map(|(start_ns, duration_ns)| {
                    self.selection.overlap_ns(start_ns, start_ns.saturating_add_unsigned(duration_ns))
                }));
            }
            Event::Gap(_) => self.inside(None),
            Event::Enter(event) => self.open.push(Open {
                name: name(),
                begin_ns: event.timed.map(|moment| moment.at_ns),
                inner_ns: 0,
                is_timed: true,
            }),
            Event::Exit(event) => {
                let name = name();
                let end_ns = event.timed.map(|moment| moment.at_ns);
                // Begun before anything was recorded.
                let Some(at) = self.open.iter().rposition(|open| open.name == name) else { return };
                while self.open.len() > at {
                    self.end(end_ns);
                }
            }
        }
    }
}

/// Visits of regions of a rank, by name, where its index has them; `None` also where regions share a name.
fn indexed(
    stored: &Stored<'_>,
    selection: &Selection,
    symbols: &mut Symbols,
) -> Option<Vec<(Arc<str>, Ended)>> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for (thread, terminal, ended) in stored.visits(selection)? {
        let signature = stored.rank.structure.threads[thread].signatures.get(terminal as usize)?;
        let name = symbols.region(&stored.rank.trace, &signature.region()?.1);
        if !known.insert((thread, name.clone())) {
            return None;
        }
        found.push((name, ended));
    }
    Some(found)
}

fn enters_some(group: &RankGroup<'_>) -> bool {
    group.calls_any(|function| Edge::of(function).is_some())
}

/// Ranks of `run` that have recorded visits of regions.
pub fn ranks_with_regions(run: &Run) -> BTreeSet<u32> {
    // Where all ranks have classes of calls none has regions.
    if run.ranks().into_iter().all(|rank| run.has_classes(rank)) {
        return BTreeSet::new();
    }
    let with = run.structure().groups().filter(enters_some);
    with.flat_map(|group| group.ranks().collect::<Vec<_>>()).collect()
}

/// Visits of regions by the ranks `with` [those](ranks_with_regions), in the part of `run` that `selection` asks for, by
/// name. Visits that the record's end cuts off end with the last window.
pub fn regions(
    run: &Run,
    with: &BTreeSet<u32>,
    selection: &Selection,
    symbols: &mut Symbols,
) -> BTreeMap<Arc<str>, Visits> {
    let mut found: BTreeMap<Arc<str>, Visits> = BTreeMap::new();
    for number in run.ranks() {
        if !with.contains(&number) || !selection.takes_rank(number) {
            continue;
        }
        symbols.next_rank();
        if let Some(of_index) =
            Stored::of(run, number).and_then(|stored| indexed(&stored, selection, symbols))
        {
            for (name, own) in of_index {
                found.entry(name).or_default().add(own);
            }
            continue;
        }
        let Some(rank) = run.rank(number) else { continue };
        let last_ns = rank.trace.windows.last().map(|window| window.end_ns);
        let mut names: FxHashMap<(u32, u32), Arc<str>> = FxHashMap::default();
        let mut walk = Walk { selection, open: Vec::new(), found: &mut found };
        let mut thread = 0;
        for event in rank.events().map_while(Result::ok) {
            let own = match &event {
                Event::Call(call) => call.thread,
                Event::Gap(_) => thread,
                Event::Enter(event) | Event::Exit(event) => event.thread,
            };
            if std::mem::replace(&mut thread, own) != own {
                while !walk.open.is_empty() {
                    walk.end(last_ns);
                }
            }
            walk.event(&event, || match &event {
                Event::Enter(event) | Event::Exit(event) => names
                    .entry((event.thread, event.terminal))
                    .or_insert_with(|| symbols.region(&rank.trace, &event.region))
                    .clone(),
                _ => "".into(),
            });
        }
        while !walk.open.is_empty() {
            walk.end(last_ns);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::Function;
    use ampl_reader::TimeIndex;
    use ampl_testkit::runs::info;
    use ampl_trace::grammar::Builder;
    use ampl_trace::model::WindowSummary;
    use ampl_trace::record::{CALL_NO_ARGS, CALL_UNFINISHED};
    use ampl_trace::regions::name_words;
    use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
    use ampl_trace::timing::{Encoder, Settings, Terminal, Time, Window};
    use ampl_trace::{RankTrace, Trace};
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    /// Terminals: an entry and an exit of each region, then a call, and one that has not returned.
    fn signatures() -> Vec<Signature> {
        let edge = |edge: Edge, name: &str| {
            let mut words = Vec::new();
            name_words(&mut words, name);
            Signature { function: edge.function(), words, ..Signature::default() }
        };
        let mut signatures: Vec<Signature> =
            NAMES.iter().flat_map(|name| [edge(Edge::Enter, name), edge(Edge::Exit, name)]).collect();
        let function = Function::by_name("MPI_Barrier").unwrap().0;
        signatures.push(Signature { function, flags: CALL_NO_ARGS, ..Signature::default() });
        let function = Function::by_name("MPI_Finalize").unwrap().0;
        let flags = CALL_NO_ARGS | CALL_UNFINISHED;
        signatures.push(Signature { function, flags, ..Signature::default() });
        signatures
    }

    /// A rank that makes these steps, so many in a window, and for each nanosecond the regions that it is in and true in a call.
    fn program(steps: &[(u8, u64)], in_window: usize) -> (Trace, Vec<(Vec<usize>, bool)>) {
        let signatures = signatures();
        let mut sequence = Builder::default();
        let mut encoder = Encoder::new(Settings { error: 0.0, floor_ns: 0 });
        let (mut open, mut clock): (Vec<usize>, Vec<_>) = (Vec::new(), Vec::new());
        let mut windows: Vec<WindowSummary> = Vec::new();
        for (number, &(step, nanos)) in steps.iter().enumerate() {
            if number % in_window == 0 {
                let (window, at_ns) = ((number / in_window) as u64, clock.len() as i64);
                encoder.window(Window { thread: 0, window, first_seq: number as u64, start_ns: at_ns });
                windows.iter_mut().last().into_iter().for_each(|last| last.end_ns = at_ns);
                windows.push(WindowSummary {
                    window,
                    start_ns: at_ns,
                    kept: true,
                    ..WindowSummary::default()
                });
            }
            let region = usize::from(step) % NAMES.len();
            let (terminal, duration_ns) = match (step / 3, open.last()) {
                (0, _) => (2 * region, 0),
                (1, Some(last)) => (2 * last + 1, 0),
                _ => (2 * NAMES.len(), nanos),
            };
            sequence.push(terminal as u32, 1);
            let (like, start_ns) = (signatures[terminal].function, clock.len() as i64);
            let of = Terminal { number: terminal as u32, like, folds: false };
            encoder.call(of, Time { start_ns, duration_ns, count: 1 });
            match (step / 3, open.is_empty()) {
                (0, _) => open.push(region),
                (1, false) => drop(open.pop()),
                _ => clock.extend((0..nanos).map(|_| (open.clone(), true))),
            }
            clock.extend((0..nanos / 2 + 1).map(|_| (open.clone(), false)));
        }
        windows.iter_mut().last().into_iter().for_each(|last| last.end_ns = clock.len() as i64);
        if open.is_empty() {
            // It is under way when the record ends.
            let (number, like) = (2 * NAMES.len() as u32 + 1, signatures[2 * NAMES.len() + 1].function);
            sequence.push(number, 1);
            let time = Time { start_ns: clock.len() as i64, duration_ns: 0, count: 1 };
            encoder.call(Terminal { number, like, folds: false }, time);
        }
        let thread = ThreadStructure { thread: 0, signatures, grammar: sequence.into_grammar() };
        let structure = RankStructure { threads: vec![thread], ..RankStructure::default() };
        let trace = Trace {
            run: info(1),
            structure: JobStructure::of(structure),
            ranks: vec![RankTrace {
                windows: windows.into(),
                times: encoder.finish(),
                ..RankTrace::default()
            }],
            ..Trace::default()
        };
        (trace, clock)
    }

    proptest! {
        #[test]
        fn times_are_those_of_each_nanosecond(
            steps in prop::collection::vec((0..9u8, 0..9u64), 1..80),
            in_window in 1..40usize,
            ends in (0..200i64, 1..200i64, any::<bool>()),
        ) {
            let (trace, clock) = program(&steps, in_window);
            let (plain, mut indexed) = (Run::from(trace), Run::from(program(&steps, in_window).0));
            let mut index = Vec::new();
            crate::query::index::write(&plain, 7, u64::MAX, &mut index, || ()).unwrap();
            indexed.set_index(TimeIndex::in_memory(index, 7).unwrap());
            let until = ends.2.then_some(ends.0 + ends.1);
            let selection = Selection::new(ends.2.then_some(ends.0), until, None).unwrap();
            let of_index = Stored::of(&indexed, 0).and_then(|stored| stored.visits(&selection));
            prop_assert!(of_index.is_some(), "its index has the visits");
            for run in [plain, indexed] {
            let found = regions(&run, &ranks_with_regions(&run), &selection, &mut Symbols::default());
            for (region, name) in NAMES.iter().enumerate() {
                let (mut inclusive, mut exclusive) = (0, 0);
                for (_, (open, in_call)) in (0..).zip(&clock).filter(|(at, _)| selection.has(*at)) {
                    inclusive += u64::from(open.contains(&region));
                    exclusive += u64::from(open.last() == Some(&region) && !in_call);
                }
                let own = found.get(*name).copied().unwrap_or_default();
                prop_assert_eq!((own.inclusive_ns, own.exclusive_ns), (inclusive, exclusive), "{}", name);
                prop_assert_eq!((own.untimed, own.partly_timed), (0, 0));
                if !ends.2 {
                    let entries = steps.iter().filter(|(step, _)| usize::from(*step) == region).count();
                    prop_assert_eq!(own.visits, entries as u64);
                }
            }
            }
        }
    }
}
