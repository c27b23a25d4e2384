//! Findings about calls as sentences.

use ampl_analysis::verdict::{Detail, Evidence, Finding, InTurn, Kind, Senders};

use super::at;
use crate::human::{bytes, count, digits, duration, named, percent, plural};

/// Ranks that compute at a time, from which on they do not do so one after another.
const SEVERAL: f64 = 1.5;

/// The finding about calls in one sentence; empty for other findings.
pub(super) fn sentence(finding: &Finding) -> String {
    let Evidence::Calls {
        kind,
        calls,
        share,
        mean_ns,
        at_site_ns,
        bytes: size,
        per_second,
        worst,
        computing,
        detail,
    } = &finding.evidence
    else {
        return String::new();
    };
    let place = finding.place.as_ref().map_or("MPI".into(), at);
    let size = size.map_or(String::new(), |size| format!(" of {}", bytes(size)));
    let (number, mean) = (count(*calls), duration(*mean_ns));
    let each = at_site_ns.map_or(String::new(), |[shortest, mean]| {
        format!(": {} a call, the shortest {}", duration(mean), duration(shortest))
    });
    // Part of the time in these calls is waiting for ranks that compute more.
    let cost = finding.cost_share.unwrap_or(*share);
    let rest = match cost < 0.98 * share {
        true => format!(", {} beyond what unequal computing over windows explains", percent(cost)),
        false => String::new(),
    };
    let time = format!("{} of the ranks' time{rest}", percent(*share));
    let waits = format!("Ranks wait in {place}{each}");
    let worst = worst
        .map_or(String::new(), |(rank, share)| format!(", rank {rank} for {} of the run", percent(share)));
    let more = detail.as_ref().map_or(String::new(), beyond_totals);
    match kind {
        Kind::Turns => format!("{waits}{more}; such calls take {time}"),
        Kind::Files => {
            let share = percent(*share);
            format!("{number} calls on files take {share} of the ranks' time{worst}, most in {place}")
        }
        Kind::Polling => format!(
            "{number} polls take {time}{worst}: {} a second of a rank, {mean} each, most in {place}{more}",
            digits(*per_second)
        ),
        Kind::SmallMessages => format!(
            "{number} messages{size}, {} a second of a rank, take {time}, most in {place}",
            digits(*per_second)
        ),
        Kind::LateRank => {
            let rank = finding.ranks.as_ref().map_or("a rank".into(), |ranks| format!("rank {ranks}"));
            format!("{waits}; {rank} waits least, and computes no more than others: such calls take {time}")
        }
        Kind::LateSender => format!("{waits}{more}: such calls take {time}"),
        Kind::Waiting => format!("{waits}: such calls take {time}"),
        // Several compute at a time where one begins its next part while the others go on.
        Kind::Pipeline if *computing >= SEVERAL => format!(
            "Ranks wait for messages in the order of their numbers, as in a pipeline: {} compute at a time on average, none \
             much more than others; they wait in {place}{each}: such calls take {time}",
            digits(*computing)
        ),
        Kind::Pipeline => format!(
            "Ranks compute one after another: {} of them at a time on average, none much more than others; they wait in \
             {place}{each}: such calls take {time}",
            digits(*computing)
        ),
        Kind::OneSided => format!("{number} one-sided calls{size} take {time}: {mean} each, most in {place}"),
        Kind::Collectives => {
            format!("{number} collective calls{size} take {time}: {mean} each, most in {place}{more}")
        }
        _ => format!("{number} messages{size} take {time}, most in {place}{more}"),
    }
}

/// Clause with evidence beyond the totals.
fn beyond_totals(detail: &Detail) -> String {
    match detail {
        Detail::InTurn(InTurn { steps, correlation, compute_ns: [mean, most] }) => format!(
            "; other ranks compute longest in each step: they wait there the less, the longer they computed before \
             (correlation {} in {}; {} of computing on average, the longest rank about {})",
            digits(*correlation),
            plural(*steps, "kept step"),
            duration(*mean),
            duration(*most)
        ),
        Detail::Growth([first, last]) => format!(
            "; a call there grows from {} in the first quarter of the kept times to {} in the last",
            duration(*first),
            duration(*last)
        ),
        Detail::BetweenPolls(share) => format!(
            "; between failed polls in a row pass about {} of the ranks' time more, which count as computing",
            percent(*share)
        ),
        Detail::Senders(Senders { waiting, senders }) => {
            let verb = match waiting.len() {
                1 => "waits, and its receives name",
                _ => "wait, and their receives name",
            };
            let less = if senders.len() == 1 { "waits" } else { "wait" };
            format!(
                "; {} {verb} only {}, which {less} less than half as long",
                named(waiting),
                named(senders)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use ampl_analysis::verdict::{Basis, Next, Place};

    use ampl_core::units::RankSet;

    use super::*;

    #[test]
    fn calls_are_sentences_of_their_own() {
        let of = |kind, detail| {
            let evidence = Evidence::Calls {
                kind,
                calls: 1200,
                share: if kind == Kind::Files { 0.05 } else { 0.4 },
                mean_ns: 3.2e6,
                at_site_ns: Some([5e3, 3.2e6]),
                bytes: Some(8.0),
                per_second: 4000.0,
                worst: Some((2, 0.3)),
                computing: 1.1,
                detail,
            };
            let ranks = Some(RankSet::range(2, 2));
            let place =
                Some(Place { function: "MPI_Allreduce", site: Some("app.c:12".into()), within: None });
            let found = Finding::new(evidence, Basis::Totals, Next::Calls);
            sentence(&Finding { place, ranks, cost_share: Some(0.25), ..found })
        };
        for (kind, expected) in [
            (
                Kind::Files,
                "1,200 calls on files take 5 % of the ranks' time, rank 2 for 30 % of the run, most in",
            ),
            (
                Kind::Polling,
                "1,200 polls take 40 % of the ranks' time, 25 % beyond what unequal computing over windows explains, rank 2 for \
                 30 % of the run: 4000 a",
            ),
            (
                Kind::SmallMessages,
                "1,200 messages of 8 B, 4000 a second of a rank, take 40 % of the ranks' time, 25 %",
            ),
            (
                Kind::LateRank,
                "Ranks wait in MPI_Allreduce @ app.c:12: 3.20 ms a call, the shortest 5 us; rank 2 waits least, and",
            ),
            (
                Kind::Waiting,
                "Ranks wait in MPI_Allreduce @ app.c:12: 3.20 ms a call, the shortest 5 us: such calls take 40 % of",
            ),
            (
                Kind::Turns,
                "Ranks wait in MPI_Allreduce @ app.c:12: 3.20 ms a call, the shortest 5 us; such calls take 40 %",
            ),
            (Kind::Pipeline, "Ranks compute one after another: 1.10 of them at a time on average"),
            (Kind::Collectives, "1,200 collective calls of 8 B take 40 % of the ranks' time, 25 % beyond"),
            (Kind::Transfer, "1,200 messages of 8 B take 40 % of the ranks' time, 25 % beyond what unequal"),
            (Kind::OneSided, "1,200 one-sided calls of 8 B take 40 %"),
        ] {
            let said = of(kind, None);
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn evidence_beyond_totals_is_a_clause() {
        let in_turn = InTurn { steps: 340, correlation: -0.981, compute_ns: [10.5e6, 22.2e6] };
        for (detail, expected) in [
            (
                Detail::InTurn(in_turn),
                "; other ranks compute longest in each step: they wait there the less, the longer they computed before \
                 (correlation -0.981 in 340 kept steps; 10.5 ms of computing on average, the longest rank about 22.2 ms)",
            ),
            (
                Detail::Growth([2e5, 7e6]),
                "; a call there grows from 200 us in the first quarter of the kept times to 7 ms in the last",
            ),
            (
                Detail::Senders(Senders {
                    waiting: RankSet::parse("1,3").unwrap(),
                    senders: RankSet::parse("0").unwrap(),
                }),
                "; ranks 1,3 wait, and their receives name only rank 0, which waits less than half as long",
            ),
            (
                Detail::BetweenPolls(0.6),
                "; between failed polls in a row pass about 60 % of the ranks' time more, which count as computing",
            ),
        ] {
            assert_eq!(beyond_totals(&detail), expected);
        }
    }
}
