//! The table of call sites, and the line of counted calls, of runs that were measured in part.

use std::path::Path;

use ampl_reader::Trace;
use ampl_reader::cells::Cells;
use ampl_reader::model::{Level, Step};
use ampl_testkit::synthetic::{Synthetic, WINDOW_NS};

use super::tests::{line, says, text};

/// The trace in which each of `ranks` only counts its calls from `window` on.
fn stepped_down(ranks: &[usize], window: u64) -> Trace {
    let mut trace = Synthetic::default().trace();
    for &rank in ranks {
        let rank = &mut trace.ranks[rank];
        let step = Step { window, at: window * WINDOW_NS, level: Level::Off, share: 0.2, limit: None };
        rank.process.steps = vec![step];
        let unmeasured = rank.windows.entries_mut().iter_mut().filter(|entry| entry.window >= window);
        unmeasured.for_each(|entry| entry.cells = Cells::default());
    }
    trace
}

/// Title of the table of call sites in `text`, and the shares in its column of MPI time.
#[track_caller]
fn table(text: &str) -> (&str, Vec<&str>) {
    let mut lines = text.lines().skip_while(|line| !line.contains(" MPI time per call"));
    let head = lines.next().unwrap_or_else(|| panic!("no table: {text}"));
    let end = head.find("MPI time per call").unwrap() + "MPI time".len();
    let rows = lines.take_while(|line| line.starts_with("  MPI_"));
    let title = head.split("   ").next().unwrap();
    let title = match title.trim() {
        // A long title has a line of its own.
        "" => text.lines().take_while(|line| *line != head).last().unwrap(),
        title => title,
    };
    (title, rows.map(|row| row[end - 8..end].trim()).collect())
}

#[test]
fn a_table_of_calls_says_how_much_of_the_time_it_is_of() {
    let whole = text(&stepped_down(&[], 0), Path::new("r"));
    let (title, shares) = table(&whole);
    assert_eq!(title, "Where MPI time goes (exact: all ranks)");
    assert!(shares.len() == 3 && shares.iter().all(|share| share.ends_with(" %")), "{whole}");

    // One of 96 rank-windows: shares are of what was measured.
    let most = stepped_down(&[3], 11);
    let said = text(&most, Path::new("r"));
    let (title, part) = table(&said);
    assert_eq!((title, part), ("Where MPI time goes (in 99.0 % of the time)", shares));

    // Half of them: which place takes most is not known.
    let half = stepped_down(&[0, 1, 2, 3, 4, 5, 6, 7], 6);
    let said = text(&half, Path::new("r"));
    assert_eq!(table(&said), ("Calls while measured (50 % of the time)", vec!["-"; 3]), "{said}");

    // All ranks measured all the time, but not all functions.
    let mut hidden = stepped_down(&[], 0);
    hidden.run.hidden = vec!["MPI_Alltoall".into()];
    let said = text(&hidden, Path::new("r"));
    assert_eq!(table(&said), ("Calls whose time is known", vec!["-"; 3]), "{said}");
}

#[test]
fn all_calls_are_counted_only_where_the_run_is_complete() {
    let counted = |trace: &Trace| line(&text(trace, Path::new("r")), "run time").contains(", all counted");
    let whole = Synthetic::default().trace();
    assert!(counted(&whole));
    // Calls that are only counted are counted.
    assert!(counted(&stepped_down(&[0, 1, 2], 4)));
    let killed = Synthetic { killed: vec![2], ..Synthetic::default() }.trace();
    let mut absent = Synthetic::default().trace();
    absent.ranks.retain(|rank| rank.process.rank != 5);
    absent.complete = false;
    let mut hidden = Synthetic::default().trace();
    hidden.run.hidden = vec!["MPI_Alltoall".into()];
    for trace in [killed, absent, hidden] {
        let said = text(&trace, Path::new("r"));
        assert!(!counted(&trace), "{said}");
        says(&said, "run time", &[" MPI calls counted"]);
        assert_eq!(said.contains("INCOMPLETE"), !trace.complete, "{said}");
    }
}
