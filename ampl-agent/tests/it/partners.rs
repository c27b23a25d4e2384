//! Windows kept for a message partner's sake, from the draw to the trace.

use ampl_agent::CallEnd;
use ampl_core::config::Mechanism;
use ampl_core::draw::kept;
use ampl_core::message::{Directive, StratumDirective};
use ampl_core::mpi::ids;
use ampl_core::units::{Rank, WindowId};
use ampl_trace::decode::Calls;
use ampl_trace::from_journal::Compacted;

use crate::common::{Job, leave, plan};

const RANKS: u32 = 32;

fn configuration(more: &str) -> String {
    format!(
        "[sampling]\npartners = \"keep\"\nwindows_per_update = 8\n[window]\nmarker = \"mpi:MPI_Barrier\"\n{more}"
    )
}

/// 8 of all ranks from window 1 on.
fn directive(mechanism: Mechanism, seed: u64) -> Directive {
    Directive {
        update: 1,
        first_window: WindowId(1),
        seed,
        mechanism,
        strata: vec![StratumDirective { group: 0, stratum: 0, size: 8, probability: 0.25, policy: 1 }],
        divided: Vec::new(),
    }
}

/// Trace of rank 0, which sends to `noted` in its second window, of five; the third sees them as partners.
fn run(config: &str, directive: &Directive, noted: &[u32]) -> Compacted {
    let job = Job::new(config, RANKS);
    let (shared, mut thread) = (&job.shared, job.thread(0));
    shared.direct(directive.clone());
    let mut traced = Vec::new();
    for window in 0..5 {
        let start = window * 100;
        if window > 0 {
            thread.enter(ids::MPI_BARRIER, 0x40, start);
            leave(&mut thread, call(start), &[1]);
        }
        traced.push(shared.is_traced());
        if let (1, Some(partners)) = (window, &shared.partners) {
            noted.iter().for_each(|&rank| partners.note(rank));
        }
    }
    thread.finish(500);
    let read = job.read();
    let stored: Vec<bool> = read.rank.windows.entries().iter().map(|window| window.kept).collect();
    assert_eq!(stored, traced, "what a host tool is told is what is stored");
    read
}

fn call(start: u64) -> CallEnd {
    CallEnd {
        function: ids::MPI_BARRIER,
        address: 0x40,
        start,
        end: start + 10,
        sent: 0,
        received: 0,
        flags: 0,
        terminal: None,
        timed: true,
        apart: false,
    }
}

fn is_drawn(rank: u32, directive: &Directive) -> bool {
    kept(&plan("", RANKS), Rank(rank), WindowId(1), directive).kept
}

/// A seed that draws `partner` but not rank 0.
fn seed(partner: u32) -> Directive {
    (0..)
        .map(|seed| directive(Mechanism::Subset, seed))
        .find(|directive| is_drawn(partner, directive) && !is_drawn(0, directive))
        .expect("there are many")
}

#[test]
fn a_rank_keeps_what_a_drawn_partner_keeps() {
    let directive = seed(5);
    let Compacted { rank, structure, .. } = run(&configuration(""), &directive, &[5]);
    let pi = 1.0 - (24.0 / 32.0) * (23.0 / 31.0);
    let mut windows = rank.windows.entries().iter();
    let first = windows.next().unwrap();
    assert_eq!((first.kept, first.drawn, first.partner, first.inclusion), (true, true, false, None));
    let before = windows.next().unwrap();
    assert_eq!((before.kept, before.drawn, before.partner, before.inclusion), (false, false, false, None));
    for window in windows {
        assert_eq!((window.kept, window.drawn, window.partner), (true, false, true), "{window:?}");
        assert_eq!(window.probability, 0.25, "that of its own draw");
        assert!((window.inclusion() - pi).abs() < 1e-12, "{window:?}");
        assert!(!window.cells.is_empty(), "of a census all summaries are there");
    }
    let stored: Vec<Option<u64>> =
        Calls::new(&structure, &rank).map(|call| Some(call.unwrap().timed?.window)).collect();
    assert_eq!(stored, [None, Some(2), Some(3), Some(4)]);
}

#[test]
fn nothing_changes_without_the_key() {
    let off = configuration("").replace("\"keep\"", "\"off\"\nselection = \"predictive\"");
    let rank = run(&off, &seed(5), &[5]).rank;
    assert_eq!(
        rank.windows.entries().iter().map(|window| window.kept).collect::<Vec<_>>(),
        [true, false, false, false, false]
    );
    assert!(rank.windows.entries().iter().all(|window| !window.partner && window.inclusion.is_none()));
}

#[test]
fn a_partner_that_is_not_drawn_keeps_nothing_and_is_counted_for_the_drawn() {
    let drawn = (0..)
        .map(|seed| directive(Mechanism::Subset, seed))
        .find(|directive| is_drawn(0, directive) && !is_drawn(5, directive))
        .expect("there are many");
    let rank = run(&configuration(""), &drawn, &[5]).rank;
    let pi = 1.0 - (24.0 / 32.0) * (23.0 / 31.0);
    for window in &rank.windows.entries()[2..] {
        assert!(window.kept && window.drawn && !window.partner);
        assert!(window.probability == 0.25 && (window.inclusion() - pi).abs() < 1e-12, "{window:?}");
    }
    let neither = (0..)
        .map(|seed| directive(Mechanism::Subset, seed))
        .find(|directive| !is_drawn(0, directive) && !is_drawn(5, directive))
        .expect("there are many");
    let rank = run(&configuration(""), &neither, &[5]).rank;
    assert!(rank.windows.entries()[1..].iter().all(|window| !window.kept && window.inclusion.is_none()));
}

#[test]
fn a_pinned_partner_is_kept_with_always() {
    let pinned = "[[group]]\nname = \"g\"\nmembers = \"0-31\"\nsample_size = 8\npinned = \"7\"\n";
    let never = Directive {
        strata: vec![StratumDirective { group: 0, stratum: 0, size: 1, probability: 0.0, policy: 1 }],
        ..directive(Mechanism::Global, 1)
    };
    let rank = run(&configuration(pinned), &never, &[3, 7]).rank;
    assert!(!rank.windows.entries()[1].kept);
    for window in &rank.windows.entries()[2..] {
        assert!(window.kept && window.partner && window.probability == 0.0);
        assert_eq!(window.inclusion(), 1.0);
    }
}

#[test]
fn only_drawn_ranks_are_in_a_sample_of_summaries() {
    let config = configuration("").replace("[window]", "summaries = \"sampled\"\n[window]");
    let rank = run(&config, &seed(5), &[5]).rank;
    assert!(rank.windows.entries()[2..].iter().all(|window| window.kept && window.cells.is_empty()));
}

#[test]
fn every_thread_s_partners_count_where_coins_are_flipped() {
    let certain = |rank: u32| {
        (0..)
            .map(|seed| directive(Mechanism::Global, seed))
            .find(|directive| kept(&plan("", RANKS), Rank(rank), WindowId(3), directive).kept)
            .expect("there are many")
    };
    let directive = certain(9);
    let rank = run(&configuration(""), &directive, &[4, 9, 30]).rank;
    let expected = |window: u64| {
        [0, 4, 9, 30]
            .iter()
            .any(|&rank| kept(&plan("", RANKS), Rank(rank), WindowId(window), &directive).kept)
    };
    for window in &rank.windows.entries()[2..] {
        assert_eq!(window.kept, expected(window.window), "{window:?}");
        let pi = 1.0 - 0.75f64.powi(4);
        assert!(!window.kept || (window.inclusion() - pi).abs() < 1e-12, "{window:?}");
    }
    assert!(rank.windows.entries()[3].kept);
}
