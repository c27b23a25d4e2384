//! Scaling studies for people.

use std::io::{self, Write};

use ampl_analysis::scaling::{BELOW, Factor, Flag, Mode, ModeBasis, Row, Scaling, Size};

use crate::comparison::words::scope;
use crate::human::{bytes, count, digits, duration, percent};

/// Columns of the names of lines.
const NAME: usize = 30;

/// Writes `study`: a column for each run.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, study: &Scaling) -> io::Result<()> {
    let Some(reference) = study.rows.first() else { return Ok(()) };
    let mode = match study.mode {
        Mode::Strong => "Strong scaling",
        Mode::Weak => "Weak scaling",
    };
    let basis = match study.basis {
        ModeBasis::Given => "as asked for",
        ModeBasis::Instructions => "by the instructions of a rank",
        ModeBasis::ComputeTime => "by the compute time of a rank",
        ModeBasis::Nothing => "taken for granted: there is no work of a rank to go by",
    };
    writeln!(out, "{mode} ({basis}); reference: {} ranks\n", count(reference.ranks.into()))?;
    if !study.sharing.is_empty() {
        let ranks = several(&study.sharing);
        writeln!(
            out,
            "Ranks shared processors at {ranks} ranks: times and efficiencies are the machine's.\n"
        )?;
    }
    let mut line = |name: &str, of: &dyn Fn(&Row) -> Option<String>| {
        let cells: Vec<String> = study.rows.iter().map(|row| of(row).unwrap_or_else(|| "-".into())).collect();
        let cells: String = cells.iter().map(|cell| format!(" {cell:>12}")).collect();
        writeln!(out, "{name:<NAME$}{cells}")
    };
    let number = |value: u64| Some(count(value));
    line("ranks", &|row| number(row.ranks.into()))?;
    line("nodes", &|row| number(row.nodes.into()))?;
    line("ranks per node", &|row| Some(digits(f64::from(row.ranks) / f64::from(row.nodes.max(1)))))?;
    line("elapsed", &|row| row.elapsed_ns.map(duration))?;
    line("speedup", &|row| row.speedup.map(digits))?;
    line("steps", &|row| row.steps.and_then(number))?;
    for factor in [Factor::Global, Factor::Parallel, Factor::LoadBalance, Factor::Communication] {
        line(name(factor), &|row| row.factor(factor).map(percent))?;
    }
    line("    serialisation, transfer", &|_| Some("not modelled".into()))?;
    line(name(Factor::ComputationScalability), &|row| {
        row.factor(Factor::ComputationScalability).map(percent)
    })?;
    let counted = study.rows.iter().any(|row| row.instructions.is_some() || row.ipc.is_some());
    if counted {
        for factor in [Factor::InstructionScalability, Factor::IpcScalability, Factor::FrequencyScalability] {
            line(name(factor), &|row| row.factor(factor).map(percent))?;
        }
        line("instructions", &|row| row.instructions.map(digits_large))?;
        line("instructions per cycle", &|row| row.ipc.map(digits))?;
        line("frequency", &|row| row.frequency_hz.map(|hertz| format!("{} GHz", digits(hertz * 1e-9))))?;
    }
    line("bytes sent per rank", &|row| row.bytes_per_rank.map(bytes))?;
    line("messages sent per rank", &|row| row.messages_per_rank.map(digits))?;
    if !counted {
        writeln!(
            out,
            "\nInstructions, instructions per cycle and frequency were not measured. For the next runs:\n  [[metric]]\n  \
             name = \"perf.instructions\"\n  [[metric]]\n  name = \"perf.cycles\""
        )?;
    }
    writeln!(out)?;
    if study.falls.is_empty() {
        writeln!(out, "No factor that was measured falls below {}.", percent(BELOW))?;
    }
    for fall in &study.falls {
        let site = match &fall.site {
            Some((site, grown)) => {
                format!("; most growth: {}, {} of the ranks' time", scope(site), percent(*grown))
            }
            None => String::new(),
        };
        let name = name(fall.factor).trim();
        writeln!(out, "{name} is {} at {} ranks{site}", percent(fall.value), count(fall.ranks.into()))?;
    }
    flags(out, study)
}

fn flags(out: &mut impl Write, study: &Scaling) -> io::Result<()> {
    writeln!(out)?;
    if study.flags.is_empty() {
        let several = study.rows.windows(2).any(|pair| pair[0].ranks != pair[1].ranks);
        writeln!(
            out,
            "{}",
            match several {
                true => "Structure: nothing grows with the number of ranks faster than its logarithm.",
                false => "Structure: growth takes runs of several numbers of ranks.",
            }
        )?;
    } else {
        writeln!(out, "Grows with the number of ranks (P)")?;
    }
    for flag in &study.flags {
        writeln!(out, "  {:<10} {}: {}", flag.law.name(), scope(&flag.site), what(flag))?;
    }
    if !study.not_recorded.is_empty() {
        writeln!(out, "  not examined: the runs of {} ranks lack calls", several(&study.not_recorded))?;
    }
    Ok(())
}

fn several(ranks: &[u32]) -> String {
    ranks.iter().map(|&ranks| count(ranks.into())).collect::<Vec<_>>().join(", ")
}

/// `elements of sendcounts 4, 8, 16, 32 at 4, 8, 16, 32 ranks; also bytes received`
pub fn what(flag: &Flag) -> String {
    let Some((first, others)) = flag.what.split_first() else { return String::new() };
    let values: Vec<String> = flag.values.iter().map(|&(_, value)| size_value(first, value)).collect();
    let ranks: Vec<String> = flag.values.iter().map(|&(ranks, _)| ranks.to_string()).collect();
    let also = match others {
        [] => String::new(),
        others => format!("; also {}", others.iter().map(size).collect::<Vec<_>>().join(", ")),
    };
    format!("{} {} at {} ranks{also}", size(first), values.join(", "), ranks.join(", "))
}

fn size_value(size: &Size, value: f64) -> String {
    if matches!(size, Size::Sent | Size::Received) { bytes(value) } else { digits(value) }
}

/// Words for a size.
pub fn size(size: &Size) -> String {
    match size {
        Size::Array(name) => format!("elements of {name}"),
        Size::Parameter(name) => format!("parameter {name}"),
        Size::Sent => "bytes sent by a call".into(),
        Size::Received => "bytes received by a call".into(),
        Size::Calls => "calls of a rank".into(),
        Size::Partners => "partners of a rank".into(),
    }
}

fn name(factor: Factor) -> &'static str {
    match factor {
        Factor::Global => "global efficiency",
        Factor::Parallel => "  parallel efficiency",
        Factor::LoadBalance => "    load balance",
        Factor::Communication => "    communication efficiency",
        Factor::ComputationScalability => "  computation scalability",
        Factor::InstructionScalability => "    instruction scalability",
        Factor::IpcScalability => "    IPC scalability",
        Factor::FrequencyScalability => "    frequency scalability",
    }
}

/// Three digits with a power of ten for large numbers.
fn digits_large(value: f64) -> String {
    if value < 1e6 { digits(value) } else { format!("{value:.2e}") }
}
