//! Entries and exits of regions in a thread's sequence.

use ampl_core::config::RegionFilter;
use ampl_trace::model::LeftOutRegion;
use ampl_trace::record::{Kind, REGION_UNSEEN, TEXT_LEFT_OUT};
use ampl_trace::regions::{Edge, name_words};

use super::Thread;
use crate::buffers::{NO_SET, Terminal};
use crate::known_regions::{KnownRegion, RegionName};
use crate::regions::Bystander;
use crate::signatures::head;
use crate::sites::SITE_ENTRIES;
use crate::stream::CallTimes;

/// A region with a name that the program passes.
#[derive(Clone, Copy, Debug)]
pub struct NamedRegion<'a> {
    /// Number that the process gives the name.
    pub number: u32,
    /// The name.
    pub name: &'a str,
    /// Index that the configuration gives it, if it names it.
    pub declared: Option<u16>,
}

impl Thread {
    /// A region is entered at `now`. Returns whether windows were closed.
    pub fn enter_region(&mut self, region: NamedRegion<'_>, now: u64) -> bool {
        let closed = match region.declared {
            Some(declared) => self.region_enter(declared, now),
            None => self.catch_up(now),
        };
        let number = self.named_region(region);
        self.pass_region(Edge::Enter, number, now);
        closed
    }

    /// A region is left at `now`. Returns whether windows were closed, and false where the configuration names it and it
    /// had not been entered.
    ///
    /// Its exit belongs to the window that it ends.
    pub fn exit_region(&mut self, region: NamedRegion<'_>, now: u64) -> (bool, bool) {
        let before = self.catch_up(now);
        let number = self.named_region(region);
        self.pass_region(Edge::Exit, number, now);
        let (closed, entered) =
            region.declared.map_or((false, true), |declared| self.region_exit(declared, now));
        (closed || before, entered)
    }

    /// The function whose code begins at `address` is passed at `now`. Returns whether windows were closed.
    pub fn pass_function(&mut self, edge: Edge, address: u64, now: u64) -> bool {
        let closed = self.catch_up(now);
        let number = self.function_region(address);
        self.pass_region(edge, number, now);
        closed
    }

    /// The thread has been in a region since before its first call.
    pub fn begin_inside(&mut self, region: NamedRegion<'_>, now: u64) {
        let number = self.named_region(region);
        self.begin_in(number, now);
    }

    /// The thread has been in the function at `address` since before its first call.
    pub fn begin_inside_function(&mut self, address: u64, now: u64) {
        let number = self.function_region(address);
        self.begin_in(number, now);
    }

    fn begin_in(&mut self, number: u32, now: u64) {
        if !self.known_regions.get(number).hides_entry() {
            self.region_stack.begin_inside(number, now);
        }
    }

    /// Goes on with the totals and visits of `bystander`, this same thread before its first call of MPI.
    pub fn take_over(&mut self, bystander: &mut Bystander) {
        bystander.hand_over();
        self.visits.take_over(bystander.visits(), &self.totals);
    }

    #[inline]
    fn named_region(&mut self, region: NamedRegion<'_>) -> u32 {
        self.known_regions.named(region.number).unwrap_or_else(|| self.new_named(region))
    }

    #[cold]
    fn new_named(&mut self, NamedRegion { number, name, .. }: NamedRegion<'_>) -> u32 {
        let mut words = Vec::new();
        name_words(&mut words, name);
        let trace = &self.shared.plan.config.trace;
        let (left_out, floor) = (!trace.regions.takes(name), self.ticks(trace.region_floor_ns));
        let region = KnownRegion::new(RegionName::Own(name.into()), words.into(), left_out, floor);
        self.known_regions.add_named(number, region)
    }

    #[inline]
    fn function_region(&mut self, address: u64) -> u32 {
        self.known_regions.function(address).unwrap_or_else(|| self.new_function(address))
    }

    #[cold]
    fn new_function(&mut self, address: u64) -> u32 {
        self.rarely(|thread| {
            let (path, offset) = (thread.shared.resolve)(address);
            let filter = &thread.shared.plan.config.hooks.filter;
            let left_out = !thread.is_wanted(filter, &path, offset);
            // Beyond the table of calls.
            let site = SITE_ENTRIES + thread.known_regions.len();
            let module = thread.module(&path);
            thread.stream.record(Kind::Site, 0, &[site as u64, module.into(), offset]);
            let floor = thread.ticks(thread.shared.plan.config.hooks.floor_ns);
            let name = RegionName::Place(path.into(), offset);
            let region = KnownRegion::new(name, [].into(), left_out, floor).at_site(site as u32);
            thread.known_regions.add_function(address, region)
        })
    }

    /// True where `filter` takes the function at `offset` of the module at `path`.
    fn is_wanted(&self, filter: &RegionFilter, path: &str, offset: u64) -> bool {
        let place = || format!("{}+{offset:#x}", path.rsplit('/').next().unwrap_or(path));
        filter.takes_all() || filter.takes(&self.shared.function_name(path, offset).unwrap_or_else(place))
    }

    fn ticks(&self, nanos: u64) -> u64 {
        (nanos as f64 / self.nanos_per_tick) as u64
    }

    /// The thread passes the region of that number at `now`.
    #[inline]
    fn pass_region(&mut self, edge: Edge, number: u32, now: u64) {
        let region = self.known_regions.get(number);
        let hides = match edge {
            Edge::Enter => region.hides_entry(),
            Edge::Exit => region.hides_exit(),
        };
        // Functions are always entered before they are left; the entry was not seen.
        let has_entry = |region: &KnownRegion| !region.left_out && region.site == 0;
        if hides || (edge == Edge::Exit && !has_entry(region) && !self.region_stack.holds(number)) {
            return;
        }
        let records = self.records();
        // What is missing before it comes first, while the stack is as it was.
        if records && self.lags() {
            self.end_gap(Some(now));
        }
        let in_reach = match edge {
            Edge::Enter => self.region_stack.enter(number, now, records),
            Edge::Exit => {
                let since = self.region_stack.exit(number, records);
                if let Some(Some(since)) = since {
                    self.known_regions.get(number).visited(now.saturating_sub(since));
                }
                since.is_some()
            }
        };
        if records && in_reach {
            self.record_edge(edge, number, now);
        }
    }

    #[inline]
    fn record_edge(&mut self, edge: Edge, number: u32, now: u64) {
        let terminal = self.edge_terminal(edge, number, false);
        if !self.append(Terminal { number: terminal, set: NO_SET }, now) {
            return;
        }
        if self.stores {
            if self.skipped {
                self.reopen(now);
            }
            let times = CallTimes { terminal, flags: 0, start: now, duration: 0 };
            if !self.stream.call(&times) {
                self.record_after_all(&times);
            }
        }
        self.sequence += 1;
    }

    /// Terminal of an edge of the region of that number.
    #[inline]
    fn edge_terminal(&mut self, edge: Edge, number: u32, unseen: bool) -> u32 {
        match self.known_regions.get(number).terminal(edge, unseen) {
            Some(terminal) => {
                self.signatures.pass(terminal);
                terminal
            }
            None => self.new_edge(edge, number, unseen),
        }
    }

    #[cold]
    fn new_edge(&mut self, edge: Edge, number: u32, unseen: bool) -> u32 {
        let flags = if unseen { REGION_UNSEEN } else { 0 };
        let region = self.known_regions.get(number);
        let (words, site) = (region.words().to_vec(), region.site);
        let (terminal, new) = self.signatures.find(head(edge.function(), flags, (site, 0)), &words);
        if new {
            self.new_signature(edge.function(), flags, (site, 0), &words);
        }
        self.known_regions.get(number).set_terminal(edge, unseen, terminal);
        terminal
    }

    /// Records entries and exits that passed unseen, behind the gap that they passed in.
    #[cold]
    pub(super) fn follow_regions(&mut self) {
        while let Some((edge, number)) = self.region_stack.next_missed() {
            let terminal = self.edge_terminal(edge, number, true);
            if !self.log.push(terminal, 1) {
                return;
            }
            self.sequence += 1;
            // They have no times.
            self.skipped = true;
        }
    }

    /// Regions of which visits were left out because they were short, in the order in which the thread met them.
    pub fn regions_left_out(&self) -> Vec<LeftOutRegion> {
        let all = self.known_regions.left_out().map(|(name, visits)| LeftOutRegion {
            region: match name {
                RegionName::Own(name) => name.to_string(),
                RegionName::Place(path, offset) => {
                    let place = || format!("{}+{offset:#x}", path.rsplit('/').next().unwrap_or(path));
                    self.shared.function_name(path, *offset).unwrap_or_else(place)
                }
            },
            visits,
        });
        all.collect()
    }

    /// Notes them in the journal; the thread ends.
    pub(super) fn note_regions_left_out(&mut self) {
        let left_out = self.regions_left_out();
        if !left_out.is_empty()
            && let Ok(text) = serde_json::to_string(&left_out)
        {
            self.stream.text(TEXT_LEFT_OUT, &text);
        }
    }

    /// The thread ends: regions that it has not left are forgotten. Another may take its place.
    pub fn end_regions(&mut self) {
        self.region_stack.restart();
        self.known_regions.restart();
        if !self.visits.end() {
            crate::declared::Irregularities::count(&self.shared.irregular.unbalanced);
        }
    }
}
