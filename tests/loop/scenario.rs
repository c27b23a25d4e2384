//! A job and its configuration: everything follows from the number of the run.

use std::fmt::Write as _;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};

use crate::chance::Chance;

/// Event that ends windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The clock, milliseconds.
    Period(u64),
    /// So many entries of `MPI_Barrier`.
    Barrier(u64),
    /// So many entries of `MPI_Sendrecv`.
    Sendrecv(u64),
    /// So many exits of the region `PHASE`.
    Region(u64),
    /// So many calls of `MPI_Pcontrol(2)`.
    Pcontrol(u64),
}

/// A run of `programs/loop_stress.c`.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Number of the run, and seed of the program.
    pub number: u64,
    /// Its MPI.
    pub mpi: Mpi,
    /// Its size.
    pub ranks: u32,
    /// Parts that the program runs through.
    phases: u32,
    /// The longest of its pauses, microseconds.
    pace: u32,
    /// Seconds after which it counts as hanging.
    limit: u64,
    /// Event that ends windows.
    pub marker: Marker,
    /// Windows between two decisions.
    pub windows_per_update: u64,
    /// True where all ranks report.
    pub census: bool,
    /// True where a budget may widen the bounds.
    pub budget: bool,
    /// True where message partners are kept with drawn ranks.
    pub partners: bool,
    /// First window without a retrospective decision, where a group has a bound.
    pub after: u64,
    /// Mechanism of the draws, as the configuration names it.
    pub mechanism: &'static str,
    /// The function whose calls are not stored, or not their times.
    pub left_out: Option<&'static str>,
    /// True where calls are stored at all.
    pub stored: bool,
    /// Groups: name, first and last member, number of ranks always kept.
    pub groups: Vec<(&'static str, u32, u32, u32)>,
    /// The whole configuration.
    pub config: String,
}

impl Scenario {
    /// The run of that number. Big sizes, which take long, are used only where `big`.
    pub fn new(number: u64, big: bool) -> Self {
        let mut chance = Chance::new(number);
        // Sizes and libraries in turn, so that few runs have all of them.
        let (ranks, mpi) = match number % 12 {
            0 if big && number.is_multiple_of(24) => (200, Mpi::OpenMpi),
            0 | 11 if big || number % 12 == 11 => (64, Mpi::OpenMpi),
            turn => {
                let mpi = [Mpi::OpenMpi, Mpi::OpenMpi, Mpi::Mpich, Mpi::Abi][(number / 3 % 4) as usize];
                ([1, 2, 3, 7, 2, 3, 7, 2, 3, 1, 7, 3][turn as usize], mpi)
            }
        };
        // Ranks of MPICH spin while they wait: with more of them than processors everything takes long.
        let phases = match (ranks, mpi) {
            (200, _) => 8,
            (64, _) => 10,
            (7, Mpi::Mpich | Mpi::Abi) => 10,
            _ => 30 + chance.below(40) as u32,
        };
        let every = 1 + chance.below(3);
        let marker = match chance.below(8) {
            0 => Marker::Period(1),
            1 => Marker::Period(5),
            2 => Marker::Period(1 + chance.below(100)),
            3 => Marker::Sendrecv(every),
            4 => Marker::Region(every),
            5 => Marker::Pcontrol(every),
            _ => Marker::Barrier(every),
        };
        let mut scenario = Self {
            number,
            mpi,
            ranks,
            phases,
            pace: 1000 + chance.below(25_000) as u32,
            // 200 ranks on two busy processors have taken five minutes, without ampl.
            limit: if big { 900 } else { 120 },
            marker,
            windows_per_update: 1 + chance.below(4),
            census: chance.below(3) > 0,
            budget: chance.below(3) == 0,
            partners: chance.below(3) == 0,
            after: 0,
            mechanism: chance.of(&["subset", "global"]),
            left_out: [None, Some("MPI_Iprobe"), Some("MPI_Sendrecv"), None][chance.below(4) as usize],
            stored: true,
            groups: groups(ranks, &mut chance),
            config: String::new(),
        };
        scenario.config = scenario.configuration(&mut chance);
        scenario
    }

    fn configuration(&mut self, chance: &mut Chance) -> String {
        // A retrospective decision needs a census, and no partners, which are drawn beforehand: other settings must
        // not ask for it, and do not get it by default.
        let selection = match self.census && !self.partners {
            true => chance.of(&["predictive", "retrospective", ""]),
            false => chance.of(&["predictive", ""]),
        };
        self.after = match selection {
            _ if !self.census || self.partners => 0,
            "predictive" if self.budget => 0,
            "predictive" => self.windows_per_update,
            _ => u64::MAX,
        };
        let selection = match selection {
            "" => String::new(),
            word => format!("selection = \"{word}\"\n"),
        };
        let summaries = if self.census { "census" } else { "sampled" };
        let (marker, every) = match self.marker {
            Marker::Period(milliseconds) => (format!("period:{milliseconds}ms"), 1),
            Marker::Barrier(every) => ("mpi:MPI_Barrier".into(), every),
            Marker::Sendrecv(every) => ("mpi:MPI_Sendrecv".into(), every),
            Marker::Region(every) => ("region:PHASE".into(), every),
            Marker::Pcontrol(every) => ("pcontrol".into(), every),
        };
        let (timing, journal) = (chance.of(&["kept", "all", "off"]), chance.of(&["node", "run", "off"]));
        self.stored = timing != "off";
        let guide = chance.of(&["mpi.time", "compute.time", "calls", "bytes.sent"]);
        let event = chance.of(&["*", "*", "MPI_Allreduce", "region:TALK", "path:PHASE>TALK"]);
        // All time of a call is inside MPI: that is refused.
        let event = if guide == "compute.time" && event.starts_with("MPI_") { "*" } else { event };
        let partners = if self.partners { "keep" } else { "off" };
        // A run that stores every call has no budget.
        self.budget &= timing != "all";
        let budget =
            if self.budget { chance.of(&["budget = \"20kB/s\"\n", "budget = \"5MB/s\"\n"]) } else { "" };
        let mut text = format!(
            "[sampling]\nwindows_per_update = {}\nupdate_mechanism = \"{}\"\nsummaries = \"{summaries}\"\n\
             {selection}partners = \"{partners}\"\n{budget}seed = {}\n\n[window]\nmarker = \"{marker}\"\n\
             every = {every}\n\n\
             [[metric]]\nname = \"{guide}\"\nevent = \"{event}\"\nrole = \"guide\"\n\n[trace]\ntiming = \"{timing}\"\n\n\
             [output]\njournal = \"{journal}\"\n",
            self.windows_per_update, self.mechanism, self.number
        );
        let _ = write!(text, "\n[agent]\nclient = {}\n", chance.below(u64::from(self.ranks)));
        if let Some(function) = self.left_out {
            let (policy, bound) =
                (chance.of(&["off", "aggregate"]), chance.of(&["", "error = 0.1\n", "confidence = 0.95\n"]));
            let _ = write!(text, "\n[[site]]\nmatch = \"{function}\"\ntrace = \"{policy}\"\n{bound}");
        }
        for &(name, first, last, pinned) in &self.groups {
            let _ = write!(text, "\n[[group]]\nname = \"{name}\"\nmembers = \"{first}-{last}\"\n");
            let size = (last - first + 1).div_ceil(2);
            let _ = match name {
                "fixed" => writeln!(text, "sample_size = {}", size.max(pinned)),
                _ => writeln!(text, "confidence = 0.9\nerror = 0.2"),
            };
            if pinned > 0 {
                let _ = writeln!(text, "pinned = \"{first}-{}\"", first + pinned - 1);
            }
        }
        text
    }

    /// The job; rank R of it leaves its counts in `log`.R.
    pub fn job(&self, log: &str) -> Job {
        let [number, phases, pace] =
            [self.number, self.phases.into(), self.pace.into()].map(|number: u64| number.to_string());
        let mut job = Job::of(self.mpi, self.ranks, "loop_stress", &[&number, &phases, &pace, log]);
        job.limit = Duration::from_secs(self.limit);
        job
    }
}

/// Two groups, one of them with a bound, or none; ranks may be left over.
fn groups(ranks: u32, chance: &mut Chance) -> Vec<(&'static str, u32, u32, u32)> {
    if ranks < 3 || chance.below(2) == 0 {
        return Vec::new();
    }
    let middle = ranks / 2;
    let last = ranks - 1 - chance.below(2) as u32;
    let pinned = |size: u32, chance: &mut Chance| chance.below(u64::from(size.min(3))) as u32;
    vec![
        ("bounded", 0, middle - 1, pinned(middle, chance)),
        ("fixed", middle, last, pinned(last - middle + 1, chance)),
    ]
}
