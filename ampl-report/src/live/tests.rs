use std::path::Path;

use ampl_analysis::live::Live;
use ampl_reader::model::{End, EndBasis, Liveness, Peer, ThreadPlace};
use ampl_reader::{Symbols, Trace};
use ampl_testkit::runs;
use ampl_testkit::synthetic::Synthetic;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::{View, draw, text};

const S: i64 = 1_000_000_000;

/// A job of eight ranks that hangs for ten seconds: rank 3 is stopped outside of MPI, the others are in a collective.
fn hung() -> Trace {
    let mut trace = Synthetic::default().trace();
    trace.complete = false;
    trace.run.end = Some(End { at_ns: 20 * S, basis: EndBasis::Now });
    for rank in &mut trace.ranks {
        let inside = rank.process.rank != 3;
        rank.process.liveness = if inside { Liveness::Runs } else { Liveness::Stopped };
        rank.process.finalized = false;
        let peer = Peer { comm: Some(runs::world()), ..Peer::default() };
        let function = "MPI_Allreduce".into();
        rank.process.threads =
            vec![ThreadPlace { function, inside, since_ns: 10 * S, peer, ..ThreadPlace::default() }];
    }
    trace
}

fn plain(trace: &Trace, width: usize) -> String {
    let live = Live::of(trace, &mut Symbols::default());
    let elsewhere = [("far".to_owned(), "7".to_owned())];
    let facts = [("program", "./app\u{1b}[2J".to_owned())];
    let run = Path::new("a run");
    text(&View { live: &live, facts: &facts, run, elsewhere: &elsewhere, damage: &[], note: None }, width)
}

/// The words of `text`, one blank apart.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_stopped_rank_is_who_all_wait_for() {
    let text = plain(&hung(), 100);
    for words in [
        "running for 20 s",
        "rank 3 not in MPI (last: MPI_Allreduce), for 10 s; the process is stopped",
        "ranks 0-2,4-7 wait for that",
        "0-2,4-7 7 ranks: in MPI_Allreduce on world, for up to 10 s",
        "of the ranks' time since MPI_Init",
        "mpi.time ± 5 % (bound 8 %)",
        "times of 64 of 96 rank-windows",
    ] {
        assert!(squeezed(&text).contains(words), "'{words}' is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains("Not heard from"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn efficiency_is_a_strip_with_what_is_not_known() {
    let mut trace = hung();
    let text = plain(&trace, 100);
    let strip = text.lines().find(|line| line.starts_with("  0 to 11")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(strip.chars().filter(|letter| ('▁'..='█').contains(letter)).count(), 12, "{text}");
    // A rank that closed no more windows: these have no efficiency.
    trace.ranks[3].windows.entries_mut().truncate(6);
    let text = plain(&trace, 100);
    let strip = text.lines().find(|line| line.starts_with("  0 to 11")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(strip.matches('·').count(), 6, "{text}");
    assert!(text.contains("in window 5, which ended 19.9 s ago"), "{text}");
}

#[test]
fn ranks_that_left_nothing_are_named_with_their_host() {
    let mut trace = hung();
    trace.ranks.retain(|rank| rank.process.rank != 7);
    let text = plain(&trace, 100);
    assert!(text.contains("Not heard from") && text.contains("7 on far"), "{text}");
    assert!(squeezed(&text).contains("bytes sent not known"), "{text}");
    trace.ranks[1].process.liveness = Liveness::Gone;
    let text = plain(&trace, 100);
    assert!(squeezed(&text).contains("rank 1 the process is gone"), "{text}");
}

#[test]
fn the_end_of_the_job_is_said() {
    let text = plain(&Synthetic::default().trace(), 100);
    assert!(text.contains("the job has ended: ampl info 'a run' has its summary"), "{text}");
    assert!(text.contains("ended after") && !text.contains("Waiting"), "{text}");
    let mut dead = hung();
    dead.run.end = Some(End { at_ns: 20 * S, basis: EndBasis::Launcher });
    assert!(plain(&dead, 100).contains("the launcher has returned and there is no whole trace"));
    dead.run.end = Some(End { at_ns: 10 * S, basis: EndBasis::LastCall });
    assert!(plain(&dead, 100).contains("no process of the job runs on this node"));
    // Ranks that compute are in no call.
    for rank in &mut dead.ranks {
        rank.process.threads.iter_mut().for_each(|thread| thread.inside = false);
    }
    assert!(plain(&dead, 100).contains("no rank has been in one call for a second"));
    // A run of which nothing is known.
    assert!(plain(&Trace::default(), 60).contains("no process of the job runs"));
}

/// Screen of a terminal of that size, and the most lines that can be scrolled.
fn shown(trace: &Trace, size: [u16; 2], scroll: usize) -> (String, usize) {
    let live = Live::of(trace, &mut Symbols::default());
    let view = View {
        live: &live,
        facts: &[],
        run: Path::new("run"),
        elsewhere: &[],
        damage: &[],
        note: Some("a note"),
    };
    let mut terminal = Terminal::new(TestBackend::new(size[0], size[1])).unwrap();
    let mut most = 0;
    terminal.draw(|frame| most = draw(frame, &view, scroll)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let row =
        |y: u16| (0..size[0]).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    ((0..size[1]).map(row).collect::<Vec<String>>().join("\n"), most)
}

#[test]
fn a_terminal_of_any_size_shows_the_state_and_the_keys() {
    let trace = hung();
    let (whole, most) = shown(&trace, [100, 50], 0);
    assert_eq!(most, 0, "{whole}");
    assert!(whole.contains("a note") && whole.contains("q leaves; the job goes on"), "{whole}");
    let (top, most) = shown(&trace, [60, 12], 0);
    assert!(most > 5 && top.starts_with("ampl top: run") && top.contains("arrows scroll"), "{top}");
    assert!(!top.contains("ampl's own time"), "{top}");
    let (end, _) = shown(&trace, [60, 12], 1000);
    assert!(end.starts_with("ampl top: run") && end.contains("ampl's own time"), "{end}");
    for size in [[1, 1], [3, 2], [20, 4]] {
        shown(&trace, size, 3);
    }
}
