//! Findings about polls.

use super::*;

/// Polls that cost too much to be recorded are counted nevertheless.
#[test]
fn polls_that_were_only_counted_are_named() {
    let polled = |per_second: u64| {
        let mut trace = job(8, 12, |_, _| 0.5);
        trace.run.ranks = 80;
        let [test, send] = ["MPI_Test", "MPI_Send"].map(|name| Function::by_name(name).unwrap().0);
        for rank in &mut trace.ranks {
            rank.process.elapsed_ns = 2_000_000_000;
            rank.process.calls = vec![(send, 30 * per_second), (test, 2 * per_second)];
        }
        of(&trace)
    };
    let found = polled(100_000);
    let kinds: Vec<Kind> = found.iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::Polling, Kind::NotMeasured]);
    assert_eq!(found[0].evidence, Evidence::Counted { calls: 1_600_000, per_second: 1e5 });
    assert_eq!((found[0].place.as_ref().unwrap().function, found[0].cost_share), ("MPI_Test", None));
    assert_eq!(polled(100)[0].kind(), Kind::NotMeasured);
}

/// Time between polls counts as computing: ranks that poll are not those that compute more.
#[test]
fn ranks_that_poll_are_not_named_for_computing_more() {
    let slow = |polling: &[u32]| {
        let mut trace = job(4, 12, |_, rank| if rank == 0 { 0.3 } else { 0.9 });
        let probe = Function::by_name("MPI_Iprobe").unwrap().0;
        trace.ranks.iter_mut().filter(|rank| polling.contains(&rank.process.rank)).for_each(|rank| {
            rank.process.calls = vec![(probe, 1000)];
        });
        let (run, sharing) = (run_times(&trace), None);
        let shares = Shares::of(&run.times);
        let facts = Facts { rows: rows(&trace), trace: &trace, run, phases: Vec::new(), sharing, shares };
        let mut found = balance::of(&facts).into_iter().collect::<Vec<_>>();
        assert_eq!(found[0].ranks.as_ref().map(ToString::to_string).as_deref(), Some("1-3"), "{found:?}");
        let evidence = Evidence::Calls {
            kind: Kind::Polling,
            calls: 3000,
            share: 0.001,
            mean_ns: 500.0,
            at_site_ns: None,
            bytes: None,
            per_second: 1000.0,
            worst: None,
            computing: 1.0,
            detail: Some(Detail::BetweenPolls(0.4)),
        };
        found.push(Finding::new(evidence, Basis::Totals, Next::Calls));
        without_polling_ranks(&facts, &mut found);
        found.iter().any(|finding| finding.kind() == Kind::SlowRank)
    };
    assert!(!slow(&[1, 2, 3]));
    assert!(slow(&[0]));
}
