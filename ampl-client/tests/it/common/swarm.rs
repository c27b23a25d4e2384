//! Thousands of nodes driven by events: a message costs when it arrives, and an idle edge nothing.

use ampl_client::{Node, Policy};
use ampl_core::message::{CensusWindow, MetricSummary, Summary, UpMessage};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

/// Ticks of the simulated clock in a window of 250 ms.
const WINDOW: u64 = 64;
const TICK_NS: u64 = 250_000_000 / WINDOW;
/// Ticks that can be planned ahead.
const AHEAD: usize = 1 << 14;

/// Faults of messages and ranks.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub seed: u64,
    /// Share of messages that never arrive; the sender takes them for sent.
    pub losses: f64,
    /// Share of messages of which a copy arrives up to eight windows later.
    pub copies: f64,
    /// Longest way of a message, ticks.
    pub delay: u64,
    /// Probability that a rank stops at a window: it sends, takes and passes on nothing.
    pub stops: f64,
    /// Longest stop, windows.
    pub longest: u64,
    /// Every so many windows the client's rank stops for the longest time.
    pub client_stops: Option<u64>,
    /// A rank whose messages to and from its parent are lost from that window on.
    pub dead: Option<(Rank, u64)>,
}

impl Weather {
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            losses: 0.0,
            copies: 0.0,
            delay: 1,
            stops: 0.0,
            longest: 1,
            client_stops: None,
            dead: None,
        }
    }
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Windows that arrived at the client, as records of their own or in ranges.
    pub covered: u64,
    /// Windows that every rank reported.
    pub exact: u64,
    /// Windows that are flagged as late.
    pub flagged: u64,
    /// Records of several windows.
    pub ranges: u64,
    /// Rank-windows that entered a census.
    pub reported: u64,
    /// Rank-windows that came late.
    pub dropped: u64,
    /// Rank-windows lost on the way.
    pub lost: u64,
    pub copied: u64,
    pub decisions: u64,
    /// `true` if every node came to its end.
    pub closed: bool,
}

enum Event {
    Up {
        child: u32,
        bytes: Vec<u8>,
        copy: bool,
    },
    Down {
        child: u32,
        bytes: Vec<u8>,
        copy: bool,
    },
    /// The edge has lost its message.
    UpFree(u32),
    DownFree(u32),
    Wake(u32),
}

/// The job.
pub struct Swarm {
    plan: Plan,
    windows: u64,
    weather: Weather,
    nodes: Vec<Node>,
    parents: Vec<Option<u32>>,
    children: Vec<Vec<Rank>>,
    up_busy: Vec<bool>,
    down_busy: Vec<bool>,
    /// First window that a rank has not reported, and the tick at which it goes on.
    at: Vec<u64>,
    stopped: Vec<u64>,
    policy: Policy,
    summary: Summary,
    now: u64,
    calendar: Vec<Vec<Event>>,
    spare: Vec<Vec<u8>>,
    random: u64,
    truth: Vec<u64>,
    /// Fewest ranks that reported a window since the last decision.
    fewest: u64,
    /// `true` if one of these windows was late.
    late: bool,
    outcome: Outcome,
}

/// Measured value of a rank: a whole number, so that sums are exact.
fn value(rank: u64, window: u64) -> u64 {
    (rank.wrapping_mul(0x9e37_79b9) ^ window.wrapping_mul(0x85eb_ca6b)) >> 7 & 1023
}

impl Swarm {
    pub fn new(plan: Plan, windows: u64, weather: Weather) -> Self {
        let ranks = plan.ranks as usize;
        let nodes: Vec<Node> = (0..plan.ranks).map(|rank| Node::new(&plan, Rank(rank))).collect();
        let mut policy = Policy::new(&plan);
        let directive = policy.first_directive().0;
        let mut swarm = Self {
            parents: nodes.iter().map(|node| node.parent().map(|rank| rank.0)).collect(),
            children: nodes.iter().map(|node| node.children().collect()).collect(),
            nodes,
            up_busy: vec![false; ranks],
            down_busy: vec![false; ranks],
            at: vec![0; ranks],
            stopped: vec![0; ranks],
            policy,
            summary: Summary::empty(&plan),
            now: 0,
            calendar: (0..AHEAD).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            random: weather.seed,
            truth: Vec::new(),
            fewest: u64::MAX,
            late: false,
            outcome: Outcome::default(),
            plan,
            windows,
            weather,
        };
        swarm.nodes[0].direct(directive);
        swarm
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && ((self.random() >> 11) as f64) < chance * 2f64.powi(53)
    }

    fn plan_in(&mut self, ticks: u64, event: Event) {
        let slot = (self.now + ticks.clamp(1, AHEAD as u64 - 1)) as usize % AHEAD;
        self.calendar[slot].push(event);
    }

    /// Every rank's windows, each at its time.
    pub fn run(&mut self) {
        for window in 0..self.windows {
            let total = (0..u64::from(self.plan.ranks)).map(|rank| value(rank, window)).sum();
            self.truth.push(total);
            for rank in 0..self.plan.ranks {
                if self.stopped[rank as usize] > self.now {
                    continue;
                }
                let all =
                    self.weather.client_stops.is_some_and(|every| rank == 0 && (window + 1) % every == 0);
                if all || self.happens(self.weather.stops) {
                    let windows =
                        if all { self.weather.longest } else { 1 + self.random() % self.weather.longest };
                    let ticks = windows * WINDOW;
                    self.stopped[rank as usize] = self.now + ticks;
                    self.plan_in(ticks, Event::Wake(rank));
                    continue;
                }
                self.report(rank, window + 1);
            }
            self.tick();
            (0..WINDOW).for_each(|_| self.step());
        }
    }

    /// Waits until every node has closed, for at most some minutes of simulated time.
    pub fn finish(mut self) -> Outcome {
        for rank in 0..self.plan.ranks {
            self.report(rank, self.windows);
            self.nodes[rank as usize].local_finished();
            self.pump(rank);
        }
        for _ in 0..1000 {
            self.tick();
            (0..WINDOW).for_each(|_| self.step());
            if self.nodes.iter().all(Node::closed) {
                self.outcome.closed = true;
                break;
            }
            for rank in 0..self.plan.ranks {
                self.nodes[rank as usize].repeat_end();
                self.pump(rank);
            }
        }
        self.outcome.dropped = self.nodes.iter().map(Node::dropped).sum();
        self.outcome
    }

    /// Closes the windows of `rank` up to `end`, one by one.
    fn report(&mut self, rank: u32, end: u64) {
        let index = rank as usize;
        for window in self.at[index]..end {
            self.summary.metrics[0] = MetricSummary::one(value(u64::from(rank), window) as f64);
            self.nodes[index].local(WindowId(window), WindowId(window), &self.summary);
        }
        self.at[index] = self.at[index].max(end);
        self.pump(rank);
    }

    fn tick(&mut self) {
        for rank in 0..self.nodes.len() {
            // A leaf waits for no rank.
            if !self.children[rank].is_empty() && self.stopped[rank] <= self.now {
                self.nodes[rank].tick(self.now * TICK_NS);
                self.pump(rank as u32);
            }
        }
    }

    fn step(&mut self) {
        self.now += 1;
        let slot = self.now as usize % AHEAD;
        for event in std::mem::take(&mut self.calendar[slot]) {
            self.happen(event);
        }
    }

    /// A stopped rank takes nothing: the message stays on its edge.
    fn awaits(&self, rank: u32) -> Option<u64> {
        self.stopped[rank as usize].checked_sub(self.now).filter(|&ticks| ticks > 0)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(rank) => self.report(rank, self.now.div_ceil(WINDOW).min(self.windows)),
            Event::UpFree(child) => {
                self.up_busy[child as usize] = false;
                self.pump(child);
            }
            Event::DownFree(child) => {
                self.down_busy[child as usize] = false;
                self.pump(self.parents[child as usize].unwrap());
            }
            Event::Up { child, bytes, copy } => {
                let parent = self.parents[child as usize].unwrap();
                if let Some(ticks) = self.awaits(parent) {
                    return self.plan_in(ticks, Event::Up { child, bytes, copy });
                }
                self.nodes[parent as usize].receive_up(Rank(child), &bytes).unwrap();
                if !copy {
                    self.spare.push(bytes);
                }
                self.pump(parent);
                if !copy {
                    self.happen(Event::UpFree(child));
                }
            }
            Event::Down { child, bytes, copy } => {
                if let Some(ticks) = self.awaits(child) {
                    return self.plan_in(ticks, Event::Down { child, bytes, copy });
                }
                self.nodes[child as usize].receive_down(&bytes).unwrap();
                self.pump(child);
                if !copy {
                    self.happen(Event::DownFree(child));
                }
            }
        }
    }

    /// Sends what free edges take; at the root, decides.
    fn pump(&mut self, rank: u32) {
        let index = rank as usize;
        if self.awaits(rank).is_some() {
            return;
        }
        if self.parents[index].is_none() {
            while let Some(window) = self.nodes[index].next_census() {
                self.census(&window);
                while let Some(reference) = self.policy.reference() {
                    self.nodes[index].refer(reference);
                }
            }
            while let Some(binned) = self.nodes[index].next_binned() {
                if let Some((decision, _)) = self.policy.judge(&binned) {
                    self.nodes[index].judge(&decision);
                }
            }
        } else if !self.up_busy[index] {
            let mut bytes = self.spare.pop().unwrap_or_default();
            if let Some(message) = self.nodes[index].next_up() {
                bytes.clear();
                bytes.extend_from_slice(message);
                self.up_busy[index] = true;
                self.send_up(rank, bytes);
            } else {
                self.spare.push(bytes);
            }
        }
        for position in 0..self.children[index].len() {
            let child = self.children[index][position];
            if self.down_busy[child.0 as usize] {
                continue;
            }
            if let Some(message) = self.nodes[index].next_down(child) {
                let bytes = message.to_vec();
                self.down_busy[child.0 as usize] = true;
                self.send_down(child.0, bytes);
            }
        }
    }

    fn is_lost(&mut self, child: u32) -> bool {
        let window = self.now / WINDOW;
        let dead = self.weather.dead.is_some_and(|(rank, from)| rank.0 == child && window >= from);
        dead || self.happens(self.weather.losses)
    }

    fn delay(&mut self) -> u64 {
        1 + self.random() % self.weather.delay
    }

    fn send_up(&mut self, child: u32, bytes: Vec<u8>) {
        let ticks = self.delay();
        if self.is_lost(child) {
            let message = UpMessage::decode(&bytes).unwrap();
            // Ranks that are not binned are counted all the same.
            let window = message.window.filter(|_| message.pass == 0);
            self.outcome.lost += window.map_or(0, |window| window.reported);
            self.spare.push(bytes);
            return self.plan_in(ticks, Event::UpFree(child));
        }
        if self.happens(self.weather.copies) {
            self.outcome.copied += 1;
            let later = ticks + self.random() % (8 * WINDOW);
            self.plan_in(later, Event::Up { child, bytes: bytes.clone(), copy: true });
        }
        self.plan_in(ticks, Event::Up { child, bytes, copy: false });
    }

    fn send_down(&mut self, child: u32, bytes: Vec<u8>) {
        let ticks = self.delay();
        if self.is_lost(child) {
            return self.plan_in(ticks, Event::DownFree(child));
        }
        if self.happens(self.weather.copies) {
            self.outcome.copied += 1;
            let later = ticks + self.random() % (8 * WINDOW);
            self.plan_in(later, Event::Down { child, bytes: bytes.clone(), copy: true });
        }
        self.plan_in(ticks, Event::Down { child, bytes, copy: false });
    }

    /// Checks what arrives at the client: it tiles the windows, counts no rank-window twice, is exact where every rank
    /// has reported and flagged where not. Every update interval is decided once.
    fn census(&mut self, window: &CensusWindow) {
        let (first, last) = (window.first_window.0, window.last_window.0);
        assert_eq!(first, self.outcome.covered, "windows come in order, each once");
        self.outcome.covered = last + 1;
        let population = u64::from(self.plan.ranks) * window.windows();
        let cell = &window.partial.cells[0];
        let metric = cell.metrics[0].census;
        assert_eq!(
            (metric.ranks, metric.n, cell.reported),
            (window.reported, window.reported, window.reported)
        );
        assert!(window.reported <= population);
        let truth: u64 = self.truth[first as usize..=last as usize].iter().sum();
        self.outcome.reported += window.reported;
        self.outcome.ranges += u64::from(first < last);
        if window.reported == population {
            assert_eq!(metric.y, truth as f64, "{first}-{last}");
            assert!(!window.late, "{first}-{last}");
            self.outcome.exact += window.windows();
        } else {
            assert!(metric.y <= truth as f64);
            self.outcome.flagged += window.windows();
        }
        self.fewest = self.fewest.min(window.reported / window.windows());
        self.late |= window.late;
        let decided = self.policy.end_window(window);
        let interval = self.plan.config.sampling.windows_per_update as u64;
        let (update, ends) = ((last + 1) / interval, (last + 1) / interval > first / interval);
        assert!(decided.is_some() || !ends, "{first}-{last}");
        if let Some((directive, decisions)) = decided {
            let begins = if ends { update * interval } else { last + 1 };
            let found: Vec<_> = decisions.iter().map(|d| (d.update, d.window, d.reported, d.late)).collect();
            assert_eq!(found, [(update, begins, self.fewest, self.late)]);
            if ends {
                (self.fewest, self.late) = (u64::MAX, false);
                self.outcome.decisions += 1;
            }
            self.nodes[0].direct(directive);
        }
    }
}
