//! The program's steps: their search in the thread's own calls, and the windows that follow them.
//!
//! Windows follow steps from an announced visit of one call on. Visits are counted by the table of call sites, which has
//! every call anyway, so the number of a window is a function of the calls alone. The search is done between calls, when
//! the tree is polled, at calls that grow by a quarter: all searches of a run together cost about five of its last.

use std::collections::BTreeMap;

use ampl_core::config::{Keep, Marker};
use ampl_core::message::{MOST_NAMED, OwnCall, OwnSteps, StepCall, StepMarker};
use ampl_core::mpi::{Class, Function};
use ampl_core::units::WindowId;
use ampl_trace::loops::{Calls, Regular, Set, Token, Ways};
use ampl_trace::record::TEXT_TIMESTEP;
use ampl_trace::timestep::{FollowedSteps, TimestepRecord};
use rustc_hash::FxHashMap;

use super::Thread;

mod shapes;

/// Most positions of a grammar that is searched.
const MOST_POSITIONS: usize = 1 << 15;
/// Positions that a search may visit.
const MOST_WORK: u64 = 1 << 17;
/// Most functions at places that are searched: the search takes time of the order of their square.
const MOST_SHAPES: usize = 512;
/// Periods of [`Marker::AUTO_PERIOD_NS`] that a loop must go on for before its calls are named. A loop inside of the first
/// step looks like steps.
const LASTING: u64 = 4;

/// Fewest steps of a loop that is found: before, a call ahead of the first step may look like one more.
const FEWEST_STEPS: u64 = 4;

/// Executions of a loop from which on the search tells whether it is inside of another.
const FEW_BREAKS: u64 = 3;

/// State of a thread that searches for steps, or whose windows follow them.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Meaning of the terminals met so far.
    tokens: Vec<Token>,
    /// Hashes of their arguments.
    arguments: Vec<(Option<u64>, u64)>,
    places: Vec<Place>,
    of_call: FxHashMap<StepCall, u32>,
    of_site: FxHashMap<(u16, u32), u32>,
    shapes: Vec<Shape>,
    /// Shapes by place and callers.
    of_way: FxHashMap<(u32, Box<[u64]>), u32>,
    /// The same by function, index of the site, and way.
    known: FxHashMap<(u16, u32, u8), u32>,
    /// Period of the last look at the calls.
    period: u64,
    /// Calls at the last search.
    searched: u64,
    running: Option<Running>,
    /// Calls that were named last.
    named: Vec<StepCall>,
    following: Option<Following>,
    /// True where steps that windows follow are not looked for again: others have replaced them, or calls are missing.
    is_settled: bool,
}

/// A function at one place, or on one path.
#[derive(Debug)]
struct Place {
    call: StepCall,
    /// Indices of its sites: several where recursion leads there.
    sites: Vec<u32>,
}

/// Calls of a place that come by one way.
#[derive(Debug)]
struct Shape {
    place: u32,
    /// First byte of the function that makes the call.
    function: Option<u64>,
    /// Return addresses into its callers.
    callers: Box<[u64]>,
}

/// A loop that goes on.
#[derive(Debug)]
struct Running {
    /// Places that each step calls equally often.
    marks: Vec<Mark>,
    /// Period and visits of the first of these when it was found.
    since: (u64, u64),
    /// The same at the last look.
    last: (u64, u64),
    /// Times that something else came between its steps, and steps when that was found last.
    breaks: (u64, u64),
    /// True where a search has found it again after it had gone on for long enough.
    lasts: bool,
    /// True where windows follow other steps.
    is_other: bool,
    /// Steps begun when a search found it first, and when it was named first.
    found: Option<u64>,
    named: Option<u64>,
}

/// A place that each step of a loop calls equally often.
#[derive(Clone, Copy, Debug)]
struct Mark {
    place: u32,
    /// Calls in each step.
    per_step: u16,
    /// Calls before the first step.
    before: u64,
}

impl Mark {
    /// Steps begun after so many visits.
    fn steps(&self, visits: u64) -> u64 {
        visits.saturating_sub(self.before).div_ceil(u64::from(self.per_step).max(1))
    }
}

/// A loop that a search has found.
#[derive(Debug)]
struct Loop {
    marks: Vec<Mark>,
    steps: u64,
    /// Times that something else came between its steps.
    breaks: u64,
    /// True where something else has come behind it.
    is_left: bool,
    /// Calls inside of it by place.
    by_place: BTreeMap<u32, u64>,
}

impl Loop {
    /// True where windows that follow calls of the places `followed`, so many in a step, do not follow its steps: it has
    /// several times as many of them in each, or none.
    fn is_other_than(&self, followed: &[u32], per_step: u16) -> bool {
        let inside: u64 = followed.iter().filter_map(|place| self.by_place.get(place)).sum();
        let is_mark = |mark: &Mark| mark.per_step == per_step && followed.contains(&mark.place);
        let most = self.steps.saturating_mul(2 * u64::from(per_step));
        !self.marks.iter().any(is_mark) && (inside == 0 || inside >= most)
    }
}

impl Running {
    /// True where it is not likely to be inside of a longer step: what comes between its steps came often, or should have
    /// come again long ago.
    fn is_outermost(&self, found: &Loop) -> bool {
        let (breaks, steps) = self.breaks;
        let is_even =
            breaks > 0 && breaks <= FEW_BREAKS && found.steps - steps.min(found.steps) <= 2 * steps / breaks;
        !found.is_left && !is_even
    }
}

/// Steps that windows follow.
#[derive(Debug)]
struct Following {
    marker: StepMarker,
    /// Visits that the table of sites has not: calls were only counted then.
    uncounted: u64,
    /// The journal's record of it.
    noted: Option<FollowedSteps>,
    /// First window of the steps that windows were to follow before.
    replaces: Option<WindowId>,
    /// Steps begun when this rank found them first, and when it named them first.
    found: Option<u64>,
    named: Option<u64>,
}

impl Place {
    /// True where its calls may be a marker.
    fn may_end_windows(&self) -> bool {
        let class = Function(self.call.function).spec().class;
        // Entry 0 of the table has calls of several sites. Polls that find nothing are in no step's calls.
        !self.sites.contains(&0)
            && !matches!(class, Class::Poll | Class::Local | Class::CountOnly | Class::Lifecycle)
    }
}

impl Thread {
    /// Lets the first thread search for steps, where windows are to follow them and all calls are recorded.
    pub(super) fn search_for_steps(&mut self) {
        if self.number == 0 && self.shared.finds_steps() && self.structure == Keep::All {
            self.steps = Some(Box::default());
        }
    }

    /// Searches the calls where they have grown, and names those of each step once a period. It is `now`.
    #[cold]
    pub fn look_for_steps(&mut self, now: u64) {
        let Some(mut steps) = self.steps.take() else { return };
        let period = self.shared.nanos_at(now) / Marker::AUTO_PERIOD_NS;
        if !steps.is_settled {
            let is_next = std::mem::replace(&mut steps.period, period) != period;
            self.examine(&mut steps, is_next);
        }
        self.steps = Some(steps);
    }

    /// Gives the search up where calls are only counted, which another table does.
    pub(super) fn end_search_if_off(&mut self) {
        if !self.is_off() {
            return;
        }
        if self.steps.take_if(|steps| steps.following.is_none()).is_some() {
            self.shared.name_steps(None);
        } else if let Some(steps) = &mut self.steps {
            steps.is_settled = true;
            self.shared.name_steps(None);
        }
    }

    fn examine(&mut self, steps: &mut Steps, is_next: bool) {
        let (calls, period) = (self.log.calls(), steps.period);
        let grown = calls > steps.searched + steps.searched / 4;
        let is_over = |running: &Running| !running.lasts && period >= running.since.0 + LASTING;
        let again = is_next && calls > steps.searched + steps.searched / 16;
        if grown || again && steps.running.as_ref().is_some_and(is_over) {
            steps.searched = calls;
            let found = self.search(steps);
            self.compare(steps, found);
        }
        if !is_next {
            return;
        }
        let named = steps.running.take().and_then(|mut running| {
            let own = self.own_steps(steps, &mut running);
            let is_other = steps.following.is_none() || running.is_other;
            steps.running = Some(running);
            own.filter(|_| is_other)
        });
        if let Some(named) = &named {
            steps.named = named.calls.iter().map(|own| own.call).collect();
        }
        self.shared.name_steps(named);
    }

    /// Notes the outcome of a search: the loop of before goes on, or another one has come.
    fn compare(&self, steps: &mut Steps, found: Option<Loop>) {
        let period = steps.period;
        let before = steps.running.take();
        let Some(found) = found else { return };
        let is_other = steps.following.as_ref().is_some_and(|following| {
            let StepMarker { call, per_step, .. } = &following.marker;
            found.is_other_than(steps.of_call.get(call).map_or(&[], std::slice::from_ref), *per_step)
        });
        // Steps that windows follow stay, unless they are parts of longer ones, or over.
        if steps.following.is_some() && !is_other {
            return;
        }
        if let Some(mut running) = before {
            let mut marks = found.marks.clone();
            let key = |mark: &Mark| (mark.place, mark.per_step);
            let is_known = |mark: &Mark| running.marks.iter().any(|known| key(known) == key(mark));
            let goes_on = marks.iter().any(is_known);
            // Few steps do not show yet what each of them calls equally often.
            marks.retain(|mark| !running.lasts || is_known(mark));
            if goes_on {
                running.marks = marks;
                if found.breaks > running.breaks.0 {
                    running.breaks = (found.breaks, found.steps);
                }
                running.lasts |= period >= running.since.0 + LASTING && running.is_outermost(&found);
                steps.running = Some(running);
                return;
            }
        }
        let first = &steps.places[found.marks[0].place as usize];
        let since = (period, self.visits_of(first));
        let after = Some(found.marks[0].steps(since.1));
        let breaks = (found.breaks, found.steps);
        steps.running = Some(Running {
            marks: found.marks,
            since,
            last: since,
            breaks,
            lasts: false,
            is_other,
            found: after,
            named: None,
        });
    }

    /// Calls to be named, where the loop lasts and still goes on.
    fn own_steps(&self, steps: &Steps, running: &mut Running) -> Option<OwnSteps> {
        let own = |&Mark { place, per_step, before }: &Mark| {
            let place = &steps.places[place as usize];
            OwnCall { call: place.call, visits: self.visits_of(place), before, per_step }
        };
        let calls: Vec<OwnCall> = running.marks.iter().map(own).collect();
        let first = calls.first()?;
        let (now, per_step) = ((steps.period, first.visits), f32::from(first.per_step));
        let rate = |from: (u64, u64)| {
            let visits = now.1.saturating_sub(from.1) as f32;
            visits / per_step / (now.0.saturating_sub(from.0)).max(1) as f32
        };
        let (mean, latest) = (rate(running.since), rate(running.last));
        let is_named = running.lasts && mean > 0.0;
        let begun = running.marks.first().map(|mark| mark.steps(now.1));
        running.named = running.named.or(begun.filter(|_| is_named));
        running.last = now;
        // Of steps that are longer than a period the latest one has one or none.
        let rate = if mean < 1.0 { mean } else { mean.max(latest) };
        is_named.then_some(OwnSteps { calls, rate })
    }

    fn visits_of(&self, place: &Place) -> u64 {
        place.sites.iter().map(|&site| self.sites.calls(site)).sum()
    }

    /// The loop that advances time; `None` where there is none, or no call is made equally often in each of its steps.
    fn search(&mut self, steps: &mut Steps) -> Option<Loop> {
        let grammar = self.log.grammar(MOST_POSITIONS)?;
        self.learn_terminals(steps);
        if steps.shapes.len() > MOST_SHAPES {
            return None;
        }
        let places: Vec<u32> = steps.shapes.iter().map(|shape| shape.place).collect();
        let functions: Vec<u16> =
            places.iter().map(|&place| steps.places[place as usize].call.function).collect();
        let ways = Ways::new(steps.shapes.iter().map(|shape| self.way(shape)).collect());
        let encloses = |inner: &Set, rest: &Set| ways.encloses(inner, rest);
        let calls = Calls {
            tokens: &steps.tokens,
            functions: &functions,
            places: &places,
            arguments: &steps.arguments,
            encloses: &encloses,
            is_placed: &|shape| ways.is_known(shape),
            work: MOST_WORK,
            goes_on: true,
        };
        let found = calls.find(&grammar).ok()?.filter(|found| found.steps >= FEWEST_STEPS)?;
        let mark = |of: Regular| {
            let own = &steps.places[of.shape as usize];
            let (before, per_step) = (self.visits_of(own).saturating_sub(of.calls), of.per_step);
            let mark = Mark { place: of.shape, per_step: u16::try_from(per_step).ok()?, before };
            own.may_end_windows().then_some(mark)
        };
        let marks: Vec<Mark> = found.regular.into_iter().filter_map(mark).take(MOST_NAMED).collect();
        // A step under way is behind those that repeat.
        let step = if found.by_arguments { found.calls.checked_div(found.steps).unwrap_or(1) } else { 1 };
        let (breaks, is_left) = (found.rare, found.wind_down >= step);
        let is_marked = !marks.is_empty();
        is_marked.then_some(Loop { marks, steps: found.steps, breaks, is_left, by_place: found.by_place })
    }

    /// Follows the steps that have been announced, from their visit on.
    #[cold]
    pub fn follow_steps(&mut self) {
        let Some(mut steps) = self.steps.take() else { return };
        let known = steps.following.as_ref().map(|following| following.marker.window);
        let announced = if steps.is_settled { None } else { self.shared.announced_steps(&steps.named) };
        if let Some(marker) = announced.filter(|marker| Some(marker.window) > known) {
            steps.is_settled = known.is_some();
            if known.is_some() {
                self.shared.name_steps(None);
            }
            let (found, named) = steps.running.take().map_or((None, None), |own| (own.found, own.named));
            let StepCall { function, path } = marker.call;
            let own: Vec<u32> = self.sites.entries().filter(|of| of.1 == function).map(|of| of.0).collect();
            self.marker_sites =
                own.into_iter().map(|site| (site, self.path_hash(&self.frames(site)) == path)).collect();
            self.marker = Some(function);
            let following = Following { marker, uncounted: 0, noted: None, replaces: known, found, named };
            // Those of before end no window from here on, whether the others begin or not.
            if let Some(mut left) = steps.following.replace(following).and_then(|before| before.noted) {
                left.left = Some(self.shared.window().0);
                self.note(left);
            }
        }
        self.steps = Some(steps);
    }

    /// True where windows may end at calls of `function` because they follow steps.
    #[inline]
    pub fn follows_steps(&self, function: Function) -> bool {
        self.marker == Some(function.0) && self.steps.is_some()
    }

    /// As [`Thread::end_windows`] for a call that is [passed](Thread::pass): the table of sites does not count it.
    #[cold]
    pub fn pass_step(&mut self, function: Function, address: u64, now: u64) -> bool {
        let site = self.site(function, address);
        if !self.accepts_step(site) {
            return false;
        }
        if let Some(following) = self.steps.as_mut().and_then(|steps| steps.following.as_mut()) {
            following.uncounted += 1;
        }
        self.visit_step(site, 0, now)
    }

    /// A call of the marker's function that returns to `address` is entered at `now`. Returns whether it has ended a
    /// window.
    pub(super) fn meets_step(&mut self, address: u64, now: u64) -> bool {
        let Some(marker) = self.marker else { return false };
        // Calls of a pause are not counted, wherever it begins and ends: windows do not end there.
        if self.shared.is_paused() {
            return false;
        }
        let site = self.site(Function(marker), address);
        self.accepts_step(site) && self.visit_step(site, 1, now)
    }

    /// True where calls from the site of that index are visits.
    fn accepts_step(&mut self, site: u32) -> bool {
        if let Some(&(_, accepts)) = self.marker_sites.iter().find(|(known, _)| *known == site) {
            return accepts;
        }
        let following = self.steps.as_ref().and_then(|steps| steps.following.as_ref());
        let path = following.map(|following| following.marker.call.path);
        let accepts = path == Some(self.path_hash(&self.frames(site)));
        self.marker_sites.push((site, accepts));
        accepts
    }

    /// The visit behind those counted, `own` further, begins at `now`. Returns whether it has ended a window.
    fn visit_step(&mut self, site: u32, own: u64, now: u64) -> bool {
        let following = self.steps.as_ref().and_then(|steps| steps.following.as_ref());
        let Some(&Following { marker, uncounted, .. }) = following else { return false };
        let accepted = self.marker_sites.iter().filter(|of| of.1);
        let visit = accepted.map(|of| self.sites.calls(of.0)).sum::<u64>() + uncounted + own;
        let Some(window) = marker.begun_by(visit) else { return false };
        self.rarely(|thread| thread.begin_step(window, now, marker.window, (site, visit)))
    }

    /// The `window` begins at `now`, unless it or a later one has begun, or others have replaced the steps that begin at
    /// window `of`.
    fn begin_step(&mut self, window: WindowId, now: u64, of: WindowId, visit: (u32, u64)) -> bool {
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        let is_replaced = open.steps.is_none_or(|steps| steps.window != of);
        if window <= open.window || open.fallen_back || is_replaced {
            return false;
        }
        open.read_counters(now);
        self.close(&mut open, now, false);
        open.window = window;
        shared.begin(&mut open, now);
        self.join(&open, now);
        drop(open);
        self.note_steps(window, now, visit);
        true
    }

    /// Notes in the journal that windows follow steps, from `window` on.
    fn note_steps(&mut self, window: WindowId, now: u64, (site, visit): (u32, u64)) {
        let following = self.steps.as_ref().and_then(|steps| steps.following.as_ref());
        let Some(following) = following.filter(|following| following.noted.is_none()) else { return };
        let &Following { marker, replaces, found, named, .. } = following;
        let inner = self.frames(site).first().copied();
        let (module, offset) = inner.map_or_else(Default::default, |inner| (self.shared.resolve)(inner));
        let record = FollowedSteps {
            function: Function(marker.call.function).name().into(),
            module,
            offset,
            every: marker.every.into(),
            per_step: marker.per_step.into(),
            visit: marker.visit,
            window: marker.window.0,
            first_visit: visit,
            first_window: window.0,
            replaces: replaces.map(|window| window.0),
            left: None,
            found_after: found,
            named_after: named,
            at: now,
        };
        let following = self.steps.as_mut().and_then(|steps| steps.following.as_mut());
        following.into_iter().for_each(|following| following.noted = Some(record.clone()));
        self.note(record);
    }

    fn note(&mut self, steps: FollowedSteps) {
        if let Ok(text) = serde_json::to_string(&TimestepRecord::Followed(steps)) {
            self.stream.text(TEXT_TIMESTEP, &text);
        }
    }
}
