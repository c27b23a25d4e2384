//! The communicators of a run, for people.

use std::fmt::Write;

use ampl_core::mpi::Function;
use ampl_reader::Communicators;

use crate::human::{count, fit, plural};

/// Number of communicators that are listed.
const SHOWN: usize = 4;

/// Number of communicators, and the first of them, in lines of `width` columns; empty where there is none.
pub fn text(comms: &Communicators, width: usize) -> String {
    let mut out = String::new();
    let all = comms.iter().len();
    if all == 0 && comms.is_complete() {
        return out;
    }
    let agreed = comms.iter().filter(|comm| comm.is_agreed()).count();
    let mut title = format!("{} that the program made", plural(all as u64, "communicator"));
    if agreed < all {
        let _ = write!(title, "; of {} it is not known which ranks share them", count((all - agreed) as u64));
    }
    if !comms.is_complete() {
        title += "; there are more, which were not looked at";
    }
    let _ = writeln!(out, "\n{}", fit(&title, width));
    for comm in comms.iter().take(SHOWN) {
        let made_by = Function::name_of(comm.function);
        let of = comm.parent.map(|parent| format!(" of {parent}")).unwrap_or_default();
        let size = comm.size.map(|size| format!(", {}", plural(size.into(), "rank"))).unwrap_or_default();
        let ranks = match (&comm.ranks, &comm.remote) {
            (Some(ranks), Some(remote)) => format!(": {ranks} and {remote}"),
            (Some(ranks), None) => format!(": {ranks}"),
            (None, _) => String::new(),
        };
        let line = format!("  {:<20}{made_by}{of}{size}{ranks}", comm.name.to_string());
        let _ = writeln!(out, "{}", fit(&line, width));
    }
    if all > SHOWN {
        let _ = writeln!(out, "  {} more: ampl info --json lists them all", count((all - SHOWN) as u64));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::WIDTH;
    use ampl_reader::structure::JobStructure;
    use ampl_testkit::splits::trace;

    #[test]
    fn text_tells_the_first_of_them() {
        assert_eq!(text(&Communicators::of(&trace(4, 0)), WIDTH), "");
        let text = super::text(&Communicators::of(&trace(4, 3)), WIDTH);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "6 communicators that the program made");
        assert_eq!(lines[2], "  comm:1              MPI_Comm_split of world, 2 ranks: 2,0");
        assert_eq!(lines[6], "  2 more: ampl info --json lists them all");
        // Whose other callers did not come.
        let mut cut = trace(4, 1);
        cut.structure = JobStructure::of(cut.structure.rank(0).unwrap());
        let lines = super::text(&Communicators::of(&cut), WIDTH);
        assert!(lines.contains("1 communicator that the program made; of 1 it is not known"), "{lines}");
        assert!(lines.contains("  comm:0.1            MPI_Comm_split of world"), "{lines}");
    }
}
