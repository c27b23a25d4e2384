//! Findings of a verdict as sentences.

mod calls;

use ampl_analysis::coverage::Coverage;
use ampl_analysis::coverage::Extent;
use ampl_analysis::efficiency::Bound;
use ampl_analysis::stop::Stop;
use ampl_analysis::verdict::{Basis, Evidence, Finding, Kind, Next, Place, Unranked};
use ampl_core::units::RankSet;

use crate::human::{capital, count, digits, duration, first, named, percent, plain, plural, ranks};
use crate::processors;

/// Title of a kind of finding, for people.
pub fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::SharedProcessors => "shared processors",
        Kind::Device => "device",
        Kind::Unreturned => "calls under way",
        Kind::NotMeasured => "not measured",
        Kind::SlowRank => "slow ranks",
        Kind::SlowHost => "slow host",
        Kind::SlowStratum => "slow stratum",
        Kind::Turns => "ranks take turns",
        Kind::MovingImbalance => "moving imbalance",
        Kind::BusiestProgram => "busiest program",
        Kind::Imbalance => "imbalance",
        Kind::LateRank => "late rank",
        Kind::LateSender => "late senders",
        Kind::Waiting => "waiting",
        Kind::Pipeline => "one after another",
        Kind::Transfer => "transfer",
        Kind::SmallMessages => "small messages",
        Kind::Collectives => "collectives",
        Kind::Polling => "polling",
        Kind::Files => "files",
        Kind::OneSided => "one-sided",
        Kind::StartUp => "start-up",
        Kind::WindDown => "wind-down",
        Kind::Change => "change",
        Kind::Nothing => "nothing stands out",
    }
}

/// Programs that a sentence has besides the first.
const PROGRAMS: usize = 4;

/// The finding in one sentence, with its numbers.
pub fn sentence(finding: &Finding) -> String {
    let cost =
        finding.cost_share.map_or(String::new(), |share| format!("{} of the ranks' time", percent(share)));
    match &finding.evidence {
        Evidence::Shared(sharing) => processors::text(sharing),
        Evidence::Device { libraries } => {
            format!("{} mapped: computing includes waiting for the device", list(libraries, "is", "are"))
        }
        Evidence::Unreturned { .. } => unreturned(finding),
        Evidence::NotMeasured(coverage) => not_measured(coverage),
        Evidence::Slow { bound, .. } => {
            let lost = if cost.is_empty() { "" } else { " is lost by that" };
            format!("{}: {}{cost}{lost}{}", slow(finding), at_least(*bound), waited(finding.place.as_ref()))
        }
        &Evidence::Moving { is_slow, in_window, in_run, windows, bound } => {
            let least = at_least(bound);
            let course = match is_slow {
                true => "Ranks that compute most in a window do so in the next, but not throughout",
                false => "Other ranks compute most in each window",
            };
            format!(
                "{course}: the greatest compute time is {} times the mean in a window, {} times over the run ({}): {least}{cost}{}",
                digits(in_window),
                digits(in_run),
                plural(windows, "window"),
                waited(finding.place.as_ref())
            )
        }
        Evidence::Programs { most: (program, share), others } => {
            let one = |(program, share): &(String, f64)| format!("{} {}", plain(program), percent(*share));
            let shown: Vec<String> = others.iter().take(PROGRAMS).map(one).collect();
            let more = others.len().saturating_sub(PROGRAMS);
            let more = if more > 0 {
                format!(" and {}", plural(more as u64, "more program"))
            } else {
                String::new()
            };
            format!(
                "Program {} computes most: its busiest rank {} of its time; {}{more}",
                plain(program),
                percent(*share),
                shown.join(", ")
            )
        }
        &Evidence::Unequal { over_mean, why, bound } => format!(
            "Ranks compute unequally, the most {} times the mean: {}{cost}; {}",
            digits(over_mean),
            at_least(bound),
            too_few(why)
        ),
        Evidence::Calls { .. } => calls::sentence(finding),
        &Evidence::Counted { calls, per_second } => format!(
            "{} polls, {} a second of a rank, most of them {}; most were counted and not timed, so the time in them is not known",
            count(calls),
            count(per_second as u64),
            finding.place.as_ref().map_or("in MPI".into(), at)
        ),
        Evidence::Phase { .. } => phase(finding, &cost),
        &Evidence::Change { window, at_ns, parallel: [before, after] } => format!(
            "From window {window} on ({}) {} of the ranks' time computes, before {}: {cost}",
            duration(at_ns),
            percent(after),
            percent(before)
        ),
        Evidence::Nothing { .. } => nothing(finding),
    }
}

fn phase(finding: &Finding, cost: &str) -> String {
    let Evidence::Phase { kind, ns, windows: [first, last], mpi, top, ended } = &finding.evidence else {
        return String::new();
    };
    let name = if *kind == Kind::StartUp { "Start-up" } else { "Wind-down" };
    let whose = if ended.is_empty() { "of it" } else { "of the others' time in it" };
    let mpi = mpi.map_or(String::new(), |mpi| {
        let top = top
            .map_or(String::new(), |(function, share)| format!(", {} of that in {function}", percent(share)));
        format!("; {} {whose} in MPI{top}", percent(mpi))
    });
    let ended = match ended.len() {
        0 => String::new(),
        _ => format!("; {} had come to MPI_Finalize, and waited there", who(ended).to_lowercase()),
    };
    format!("{name} takes {} of a rank, windows {first} to {last}: {cost}{ended}{mpi}", duration(*ns))
}

fn unreturned(finding: &Finding) -> String {
    let (Evidence::Unreturned { waiting, longest_ns, at_most, is_now, of_threads, stop }, Some(place)) =
        (&finding.evidence, &finding.place)
    else {
        return String::new();
    };
    let (verb, until) = match (is_now, waiting.len()) {
        (true, 1) => ("is", "until now"),
        (true, _) => ("are", "until now"),
        (false, 1) => ("was", "until the end of the job"),
        (false, _) => ("were", "until the end of the job"),
    };
    let how = match (at_most, waiting.len()) {
        (true, _) => "at most ",
        (false, 1) => "",
        (false, _) => "up to ",
    };
    let why = match stop {
        Some(Stop::Aborted(by)) => format!("; {} called MPI_Abort", ranks(by)),
        Some(Stop::Outside(of)) => {
            let verb = match (is_now, of.ranks.len()) {
                (true, 1) => "is",
                (true, _) => "are",
                (false, 1) => "was",
                (false, _) => "were",
            };
            format!("; {} {verb} not in MPI meanwhile", ranks(&of.ranks))
        }
        Some(Stop::Awaited { ranks: of, by }) => {
            let all = waiting.iter().all(|rank| by.contains(rank));
            let (who, verb) = match (all, by.len()) {
                (true, _) => ("they".to_owned(), "wait"),
                (false, 1) => (ranks(by), "waits"),
                (false, _) => (ranks(by), "wait"),
            };
            format!("; {who} {verb} for {}, directly or through others", ranks(of))
        }
        Some(Stop::Circle { ranks: of, .. }) if of.len() == 1 => format!("; {} waits for itself", ranks(of)),
        Some(Stop::Circle { ranks: of, .. }) => format!("; {} wait for each other", ranks(of)),
        Some(Stop::First(of)) => {
            format!("; {} entered or left a call last before all others", ranks(&of.ranks))
        }
        None => String::new(),
    };
    let time = duration(*longest_ns);
    let whose = if *of_threads { "the time of the ranks' threads" } else { "the ranks' time" };
    let cost = finding.cost_share.map_or(String::new(), |share| format!("{} of {whose}", percent(share)));
    // Other ranks may be in other calls.
    let whole = if cost.is_empty() { cost } else { format!("; all calls that had not returned take {cost}") };
    format!("{} {verb} in {} {until}, for {how}{time}{why}{whole}", who(waiting), at(place))
}

fn not_measured(coverage: &Coverage) -> String {
    if coverage.unseen {
        return "MPI functions that ampl does not see are called: time outside of the others is not known"
            .into();
    }
    let Coverage { share, ranks, of_ranks, windows, of_windows, .. } = *coverage;
    let all = coverage.extent() != Extent::Little;
    if of_windows == 0 {
        return "No window was closed: ranks cannot be compared".into();
    }
    if all {
        return "No time was measured".into();
    }
    format!(
        "Only {} of the ranks' time was measured by all ranks: {} of {}, {} of {}; nothing is said of the rest",
        percent(share),
        count(ranks),
        plural(of_ranks, "rank"),
        count(windows),
        plural(of_windows, "window")
    )
}

fn slow(finding: &Finding) -> String {
    let (
        Evidence::Slow { kind, group, over_mean, windows: [windows, of], phase, recurs, least, .. },
        Some(ranks),
    ) = (&finding.evidence, &finding.ranks)
    else {
        return String::new();
    };
    let several = ranks.len() > 1;
    let subject = match (kind, group, &finding.hosts[..]) {
        (Kind::SlowHost, _, [host, ..]) => format!("The ranks of host {host} ({})", first(ranks)),
        (_, Some(group), _) => format!("The ranks of group {group} ({})", first(ranks)),
        (Kind::SlowStratum, None, _) => {
            format!("A stratum of {} ({})", plural(ranks.len(), "rank"), first(ranks))
        }
        (_, None, [host]) => format!("{} on {host}", who(ranks)),
        _ => who(ranks),
    };
    let one = *kind == Kind::SlowStratum && group.is_none() || !several;
    let verb = if one { "computes" } else { "compute" };
    let each = if several && *kind != Kind::SlowHost { "each of them " } else { "" };
    let when = match (phase, of) {
        (Some([first, last]), _) => format!(" in windows {first} to {last}"),
        (None, 0) => " over the run".to_owned(),
        _ if *recurs => format!(
            " over the run, but now and then: {each}above it in {} of {}",
            count(*windows),
            plural(*of, "window")
        ),
        _ => format!(", {each}above it in {} of {}", count(*windows), plural(*of, "window")),
    };
    let least =
        least.map_or(String::new(), |(rank, part)| format!("; rank {rank} least, {} times", digits(part)));
    format!("{subject} {verb} {} times the mean{when}{least}", digits(*over_mean))
}

/// Words before a cost that is a lower bound: turns within a window are not seen.
fn at_least(bound: Bound) -> &'static str {
    if bound == Bound::AtLeast { "at least " } else { "" }
}

fn who(ranks: &RankSet) -> String {
    capital(&named(ranks))
}

/// The call in which the others are longest meanwhile.
fn waited(place: Option<&Place>) -> String {
    place.map_or(String::new(), |place| format!("; the others are longest in {}", at(place)))
}

/// `MPI_Send @ app.c:12`, or `MPI_Send @ exchange (libapp.so+0x12)`.
pub fn at(place: &Place) -> String {
    let Place { function, site, within } = place;
    match (site, within) {
        (Some(site), Some(within)) => format!("{function} @ {within} ({site})"),
        (Some(site), None) => format!("{function} @ {site}"),
        (None, _) => (*function).to_owned(),
    }
}

fn nothing(finding: &Finding) -> String {
    let &Evidence::Nothing { parallel, imbalance, mpi, unranked } = &finding.evidence else {
        return String::new();
    };
    let parts = match (imbalance, mpi) {
        (Some(imbalance), Some(mpi)) => {
            format!("; imbalance takes {}, MPI besides {}", percent(imbalance), percent(mpi))
        }
        _ => String::new(),
    };
    let few = unranked.map_or(String::new(), |why| format!("; {}", too_few(why)));
    format!("{} of the ranks' time computes{parts}{few}", percent(parallel))
}

fn too_few(why: Unranked) -> String {
    match why {
        Unranked::FewRanks(1) => "there is one rank only".into(),
        Unranked::FewRanks(ranks) => format!("{ranks} ranks are too few to compare"),
        Unranked::FewWindows(1) => "one window is too little to compare ranks in".into(),
        Unranked::FewWindows(windows) => format!("{windows} windows are too few to compare ranks in"),
        Unranked::Disturbed => {
            "other ranks in each window, while they lost their processors often: it is not known how much of it the \
             program does"
                .into()
        }
    }
}

/// Up to four names, and whether there are more.
fn list(names: &[String], one: &str, several: &str) -> String {
    let verb = if names.len() == 1 { one } else { several };
    let more = if names.len() > 4 { ", …" } else { "" };
    format!("{}{more} {verb}", names[..names.len().min(4)].join(", "))
}

/// The data that a finding rests on, in words.
pub fn basis(finding: &Finding) -> String {
    let basis = match finding.basis {
        Basis::Census => "window summaries of all ranks",
        Basis::Totals => "totals of all ranks by call site",
        Basis::Measured => "windows that all ranks measured",
        Basis::Recorded => "facts recorded about the job",
    };
    match Coverage::extent_of(finding.coverage) {
        Extent::Whole => basis.to_owned(),
        _ => format!("{basis}, {} of the ranks' time", percent(finding.coverage)),
    }
}

/// The command that examines a finding of `run`, which is a word of a shell.
pub fn next(next: Next, run: &str) -> String {
    match next {
        Next::Info => format!("ampl info {run}"),
        Next::Calls => format!("ampl info {run} --calls"),
        Next::Efficiency => format!("ampl efficiency {run}"),
        Next::Strata => format!("ampl strata {run}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(evidence: Evidence, cost: Option<f64>) -> Finding {
        Finding { cost_share: cost, ..Finding::new(evidence, Basis::Census, Next::Efficiency) }
    }

    fn place() -> Option<Place> {
        Some(Place { function: "MPI_Allreduce", site: Some("app.c:12".into()), within: None })
    }

    #[test]
    fn a_slow_rank_is_a_sentence() {
        let evidence = |kind, windows| Evidence::Slow {
            kind,
            group: None,
            over_mean: 1.87,
            windows,
            phase: None,
            recurs: false,
            bound: Bound::AtLeast,
            least: None,
        };
        let of = |kind, ranks: &str, hosts: &[&str], windows| Finding {
            ranks: Some(RankSet::parse(ranks).unwrap()),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            place: place(),
            ..finding(evidence(kind, windows), Some(0.231))
        };
        for (found, expected) in [
            (
                of(Kind::SlowRank, "3", &["a"], [18, 20]),
                "Rank 3 on a computes 1.87 times the mean, above it in 18 of 20 windows: at least 23.1 % of the ranks' time is lost by \
                 that; the others are longest in MPI_Allreduce @ app.c:12",
            ),
            (
                of(Kind::SlowHost, "2-3", &["a"], [18, 20]),
                "The ranks of host a (2-3) compute 1.87 times the mean, above it in 18 of 20 windows",
            ),
            (
                of(Kind::SlowStratum, "0-15", &["a", "b"], [20, 20]),
                "A stratum of 16 ranks (0-15) computes 1.87 times the mean, each of them above it in 20 of 20 windows",
            ),
            (
                of(Kind::SlowRank, "3", &["a"], [0, 0]),
                "Rank 3 on a computes 1.87 times the mean over the run: at least 23.1 %",
            ),
        ] {
            let said = sentence(&found);
            assert!(said.starts_with(expected), "{said}");
        }
        let mut found = of(Kind::SlowRank, "2-3", &["a"], [8, 20]);
        for (part, again, expected) in [
            (
                Some([3, 9]),
                false,
                "Ranks 2-3 on a compute 1.87 times the mean in windows 3 to 9: at least 23.1 %",
            ),
            (
                None,
                true,
                "Ranks 2-3 on a compute 1.87 times the mean over the run, but now and then: each of them above it in 8",
            ),
        ] {
            let Evidence::Slow { phase, recurs, .. } = &mut found.evidence else { unreachable!() };
            (*phase, *recurs) = (part, again);
            let said = sentence(&found);
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn calls_under_way_name_whom_they_wait_for() {
        let evidence_by = |of_threads, by| Evidence::Unreturned {
            waiting: RankSet::parse("0-2").unwrap(),
            longest_ns: 23e9,
            at_most: false,
            is_now: false,
            of_threads,
            stop: Some(Stop::Awaited {
                ranks: RankSet::parse("3").unwrap(),
                by: RankSet::parse(by).unwrap(),
            }),
        };
        let evidence = |of_threads| evidence_by(of_threads, "0-2,5");
        let said = |of| sentence(&Finding { place: place(), ..finding(evidence(of), Some(0.58)) });
        assert!(said(true).ends_with("take 58.0 % of the time of the ranks' threads"), "{}", said(true));
        assert_eq!(
            said(false),
            "Ranks 0-2 were in MPI_Allreduce @ app.c:12 until the end of the job, for up to 23 s; they wait for rank 3, directly or \
             through others; all calls that had not returned take 58.0 % of the ranks' time"
        );
        let others = sentence(&Finding { place: place(), ..finding(evidence_by(false, "1"), Some(0.58)) });
        assert!(others.contains("; rank 1 waits for rank 3, directly or through others; all"), "{others}");
    }

    #[test]
    fn a_place_without_a_line_has_its_function() {
        let place = |site: Option<&str>, within: Option<&str>| {
            let [site, within] = [site, within].map(|name| name.map(str::to_owned));
            at(&Place { function: "MPI_Send", site, within })
        };
        assert_eq!(place(Some("lib.so+0x12"), Some("exchange")), "MPI_Send @ exchange (lib.so+0x12)");
        assert_eq!(
            (place(Some("a.c:3"), None), place(None, None)),
            ("MPI_Send @ a.c:3".into(), "MPI_Send".into())
        );
    }

    #[test]
    fn the_rest_are_sentences() {
        let nothing = Evidence::Nothing {
            parallel: 0.97,
            imbalance: Some(0.01),
            mpi: Some(0.02),
            unranked: Some(Unranked::FewWindows(3)),
        };
        let change = Evidence::Change { window: 7, at_ns: 1.75e9, parallel: [0.96, 0.6] };
        let phase = Evidence::Phase {
            kind: Kind::StartUp,
            ns: 2e9,
            windows: [0, 7],
            mpi: Some(0.4),
            top: Some(("MPI_Bcast", 0.9)),
            ended: RankSet::default(),
        };
        let ended = Evidence::Phase {
            kind: Kind::WindDown,
            ns: 3e9,
            windows: [8, 20],
            mpi: Some(0.0),
            top: None,
            ended: RankSet::parse("0-2").unwrap(),
        };
        let device = Evidence::Device { libraries: vec!["libcuda.so.1".into()] };
        for (evidence, expected) in [
            (
                nothing,
                "97 % of the ranks' time computes; imbalance takes 1 %, MPI besides 2 %; 3 windows are too few",
            ),
            (change, "From window 7 on (1.75 s) 60 % of the ranks' time computes, before 96 %: 20 % of"),
            (
                phase,
                "Start-up takes 2 s of a rank, windows 0 to 7: 20 % of the ranks' time; 40 % of it in MPI, 90 %",
            ),
            (
                ended,
                "Wind-down takes 3 s of a rank, windows 8 to 20: 20 % of the ranks' time; ranks 0-2 had come to MPI_Finalize, \
                 and waited there; 0 % of the others' time in it in MPI",
            ),
            (device, "libcuda.so.1 is mapped: computing includes waiting for the device"),
        ] {
            let said = sentence(&finding(evidence, Some(0.2)));
            assert!(said.starts_with(expected), "{said}");
        }
        assert_eq!(next(Next::Calls, "$RUN"), "ampl info $RUN --calls");
    }
}
