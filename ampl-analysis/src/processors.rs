//! Ranks that had less than a processor each: their efficiencies are the machine's.

use std::collections::{BTreeMap, BTreeSet};

use ampl_trace::Trace;
use ampl_trace::model::Process;
use serde::Serialize;

/// Involuntary context switches a second from which a rank counts as sharing its processor: a rank with a processor
/// of its own loses it to the system a few times a second.
const OFTEN: f64 = 30.0;
/// The same in a second of its processor time, for ranks that run little; and fewest in a second that count then.
const OFTEN_RUNNING: f64 = 60.0;
const FEWEST: f64 = 2.0;
/// Shortest run with a known rate, nanoseconds.
const SHORT_NS: u64 = 200_000_000;

/// Reason why ranks had less than a processor each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The node has no more.
    Node,
    /// Ranks were bound to the same processors.
    Binding,
    /// A control group allows no more.
    ControlGroup,
}

/// Ranks of one host that share processors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crowd {
    /// The host.
    pub host: String,
    /// Ranks that share.
    pub ranks: usize,
    /// Processors that they may use together.
    pub processors: f64,
    /// Reason why there are no more.
    pub limit: Limit,
}

/// Ranks that lost their processor to others often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disturbed {
    /// Number of ranks.
    pub ranks: usize,
    /// The one that lost it most often.
    pub rank: u32,
    /// Times a second.
    pub per_second: f64,
}

/// Ranks that had to share processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// Ranks that share by host, as far as known from bindings, processors and control groups.
    pub hosts: Vec<Crowd>,
    /// Ranks that share by their involuntary context switches; with which processes is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
    /// Processor time of the ranks over their run time, where both are known: what they compute at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran: Option<f64>,
}

impl Sharing {
    /// Sharing among the ranks that were read; `None` where no sign of it was found.
    pub fn of(trace: &Trace) -> Option<Self> {
        let mut hosts: BTreeMap<&str, Vec<&Process>> = BTreeMap::new();
        for rank in &trace.ranks {
            hosts.entry(&rank.process.host).or_default().push(&rank.process);
        }
        let hosts: Vec<Crowd> = hosts.into_iter().filter_map(|(host, ranks)| crowd(host, &ranks)).collect();
        let sharing = Self { hosts, disturbed: disturbed(trace), ran: ran(trace) };
        (!sharing.hosts.is_empty() || sharing.disturbed.is_some()).then_some(sharing)
    }
}

/// Processor time over run time of all ranks; `None` where one of them is not known.
fn ran(trace: &Trace) -> Option<f64> {
    let (mut processor, mut elapsed) = (0.0, 0.0);
    for Process { processor_ns, elapsed_ns, .. } in trace.ranks.iter().map(|rank| &rank.process) {
        if *processor_ns == 0 || *elapsed_ns == 0 {
            return None;
        }
        (processor, elapsed) = (processor + *processor_ns as f64, elapsed + *elapsed_ns as f64);
    }
    (elapsed > 0.0).then(|| processor / elapsed)
}

/// The processors of a list such as `0-3,8`; `None` where it is none.
fn processors(list: &str) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        // Numbers of a damaged file must not ask for memory.
        if last < first || last - first > 1 << 16 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// The ranks of a host that have to share; `None` where each can have a processor of its own, or nothing is known.
fn crowd(host: &str, ranks: &[&Process]) -> Option<Crowd> {
    let sets: Vec<BTreeSet<u32>> = ranks.iter().map(|rank| processors(&rank.cpus)).collect::<Option<_>>()?;
    let all: BTreeSet<u32> = sets.iter().flatten().copied().collect();
    let found = |ranks: usize, processors: f64, limit| {
        Some(Crowd { host: host.to_owned(), ranks, processors, limit })
    };
    let quota = ranks.iter().map(|rank| rank.quota).filter(|&quota| quota > 0).max();
    let allowed = quota.map(|quota| quota as f64 / 1000.0).filter(|&allowed| allowed < all.len() as f64);
    if let Some(allowed) = allowed.filter(|&allowed| allowed < ranks.len() as f64) {
        return found(ranks.len(), allowed, Limit::ControlGroup);
    }
    if ranks.len() > all.len() {
        let node = ranks.iter().map(|rank| rank.processors).max().unwrap_or(0);
        let limit = if (all.len() as u64) < node { Limit::Binding } else { Limit::Node };
        return found(ranks.len(), all.len() as f64, limit);
    }
    // Ranks whose allowed processors too many others need, too (Hall 1935).
    let distinct: BTreeSet<&BTreeSet<u32>> = sets.iter().collect();
    let within = |set: &BTreeSet<u32>| sets.iter().filter(|other| other.is_subset(set)).count();
    let tight: Vec<&BTreeSet<u32>> = distinct.into_iter().filter(|set| within(set) > set.len()).collect();
    let shared: BTreeSet<u32> = tight.iter().copied().flatten().copied().collect();
    let sharing = sets.iter().filter(|set| tight.iter().any(|tight| set.is_subset(tight))).count();
    if sharing == 0 { None } else { found(sharing, shared.len() as f64, Limit::Binding) }
}

/// Ranks whose main thread lost the processor [often](OFTEN).
fn disturbed(trace: &Trace) -> Option<Disturbed> {
    let rate = |process: &Process| {
        let switches = process.switches.filter(|_| process.elapsed_ns >= SHORT_NS)?;
        let in_second_of = |ns: u64| switches as f64 * 1e9 / ns as f64;
        let per_second = in_second_of(process.elapsed_ns);
        let runs = process.processor_ns > 0 && per_second >= FEWEST;
        let is_often = per_second >= OFTEN || runs && in_second_of(process.processor_ns) >= OFTEN_RUNNING;
        is_often.then_some((per_second, process.rank))
    };
    let often: Vec<(f64, u32)> = trace.ranks.iter().filter_map(|rank| rate(&rank.process)).collect();
    let &(per_second, rank) = often.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Disturbed { ranks: often.len(), rank, per_second })
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;

    use super::*;

    fn trace(ranks: &[(&str, &str)]) -> Trace {
        let rank = |(number, (host, cpus)): (u32, &(&str, &str))| {
            let mut rank = RankTrace::default();
            rank.process = Process {
                rank: number,
                host: (*host).into(),
                cpus: (*cpus).into(),
                processors: 4,
                elapsed_ns: 1_000_000_000,
                switches: Some(3),
                ..Process::default()
            };
            rank
        };
        Trace { ranks: (0..).zip(ranks).map(rank).collect(), ..Trace::default() }
    }

    /// Ranks, processors and limit of each host that shares.
    fn shared(trace: &Trace) -> Vec<(usize, f64, Limit)> {
        let hosts = Sharing::of(trace).map_or(Vec::new(), |sharing| sharing.hosts);
        hosts.into_iter().map(|crowd| (crowd.ranks, crowd.processors, crowd.limit)).collect()
    }

    #[test]
    fn more_ranks_than_processors_share_them() {
        assert_eq!(Sharing::of(&trace(&[("a", "0-3"); 4])), None);
        assert_eq!(shared(&trace(&[("a", "0-3"); 8])), [(8, 4.0, Limit::Node)]);
        let two = [[("a", "0-3"); 6], [("b", "0-3"); 6]].concat();
        assert_eq!(shared(&trace(&two)), [(6, 4.0, Limit::Node); 2]);
        // One has room, the other has not.
        let one = [&[("a", "0-3"); 6][..], &[("b", "0-3"); 4]].concat();
        assert_eq!(shared(&trace(&one)), [(6, 4.0, Limit::Node)]);
        let mut limited = trace(&[("a", "0-3"); 4]);
        limited.ranks.iter_mut().for_each(|rank| rank.process.quota = 1500);
        assert_eq!(shared(&limited), [(4, 1.5, Limit::ControlGroup)]);
    }

    #[test]
    fn ranks_that_are_bound_to_one_processor_share_it() {
        let sharing = Sharing::of(&trace(&[("a", "0"), ("a", "0"), ("a", "1-3"), ("a", "2")])).unwrap();
        let expected = Crowd { host: "a".into(), ranks: 2, processors: 1.0, limit: Limit::Binding };
        assert_eq!(sharing.hosts, [expected]);
        assert_eq!(shared(&trace(&[("a", "0-1"); 3])), [(3, 2.0, Limit::Binding)]);
        assert_eq!(Sharing::of(&trace(&[("a", "0,2"), ("a", "0,2"), ("a", "1")])), None);
        // The same numbers on another host are others.
        assert_eq!(Sharing::of(&trace(&[("a", "0"), ("b", "0")])), None);
        assert_eq!(Sharing::of(&trace(&[("a", "?"), ("a", "?"), ("a", "0-")])), None);
    }

    #[test]
    fn other_work_on_the_processors_shows_in_switches() {
        let mut disturbed = trace(&[("a", "0"), ("a", "1")]);
        disturbed.ranks[1].process.switches = Some(180);
        let sharing = Sharing::of(&disturbed).unwrap();
        assert_eq!(sharing.disturbed, Some(Disturbed { ranks: 1, rank: 1, per_second: 180.0 }));
        disturbed.ranks[1].process.elapsed_ns = 1000;
        assert_eq!(Sharing::of(&disturbed), None);
        // A rank that ran for a twentieth of the time, and lost its processor as often as one that ran all of it.
        for (switches, processor_ns, often) in
            [(9, 50_000_000, true), (9, 900_000_000, false), (1, 1_000_000, false), (9, 0, false)]
        {
            let mut little = trace(&[("a", "0"), ("a", "1")]);
            let process = &mut little.ranks[0].process;
            (process.switches, process.processor_ns) = (Some(switches), processor_ns);
            assert_eq!(Sharing::of(&little).is_some(), often, "{switches} {processor_ns}");
        }
    }
}
