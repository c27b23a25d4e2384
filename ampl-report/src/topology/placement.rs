//! A placement of ranks on nodes, for people.

use std::io::{self, Write};

use ampl_analysis::placement::{Basis, LEAST_SAVING, Report};

use crate::human::{bytes, count, percent, plural};

/// Writes the crossing traffic before and after.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let basis = match report.basis {
        Basis::Recorded => "as recorded",
        Basis::Assumed => "in the order of ranks, by --ranks-per-node",
    };
    writeln!(out, "\nplacement on {}", plural(report.nodes as u64, "node"))?;
    if report.nodes < 2 {
        return writeln!(
            out,
            "  nothing crosses between nodes; --ranks-per-node N divides the ranks differently"
        );
    }
    writeln!(out, "  before is {basis}; messages of two ranks only, exact; no collectives")?;
    writeln!(out, "  {:<22}{:>14}{:>14}", "", "before", "after")?;
    let mut row =
        |what: &str, before: String, after: String| writeln!(out, "  {what:<22}{before:>14}{after:>14}");
    let (before, after) = (&report.before, &report.after);
    row("crossing bytes", bytes(before.bytes as f64), bytes(after.bytes as f64))?;
    row("crossing messages", count(before.messages), count(after.messages))?;
    row("busiest node's bytes", bytes(before.busiest_bytes as f64), bytes(after.busiest_bytes as f64))?;
    row("busiest node's messages", count(before.busiest_messages), count(after.busiest_messages))?;
    if report.files.is_empty() {
        let least = percent(LEAST_SAVING);
        return writeln!(
            out,
            "  it saves {}, less than {least}: no files are written, keep the ranks as they are",
            percent(report.saving.max(0.0))
        );
    }
    writeln!(out, "  it saves {} of the crossing bytes", percent(report.saving))?;
    for (file, what) in report.files.iter().zip([
        "Open MPI: mpirun --rankfile FILE (from 5: --map-by rankfile:file=FILE)",
        "Slurm: SLURM_HOSTFILE=FILE srun -m arbitrary",
        "Cray MPICH: MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE=FILE",
    ]) {
        writeln!(out, "  {file}\n      {what}")?;
    }
    if report.placeholders {
        writeln!(out, "  hosts are not known: replace node0, node1, … in both files by yours")?;
    }
    Ok(())
}
