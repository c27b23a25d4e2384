//! The command line of ampl. Finds `libampl.so` by path; links no MPI.
#![forbid(unsafe_code)]

#[macro_use(notice)]
extern crate ampl_launch;

mod check;
mod communicators;
mod copying;
mod decisions;
mod decode;
mod diff;
mod doctor;
mod efficiency;
mod estimate;
mod exec;
mod export;
mod failure;
mod fraction;
mod gaps;
mod help;
mod hint;
mod history;
mod info;
mod job_args;
mod logical;
mod output;
mod pages;
mod plan;
mod population;
mod progress;
mod query;
mod record;
mod recover;
mod report;
mod run;
mod rundir;
mod scaling;
mod selection;
mod simulate;
mod skeleton;
mod strata;
mod summary;
mod time_steps;
mod timesteps;
mod top;
mod topology;
mod usage;
mod verdict;
mod whatif;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Adaptive sampling of MPI programs: every rank's call structure, and the timings of those ranks that a stated
/// confidence needs.
#[derive(Parser)]
#[command(name = "ampl", version, after_help = "Example:\n  ampl run -- mpirun -n 8 ./app input.txt")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Exec(exec::Args),
    Info(info::Args),
    Decode(decode::Args),
    Estimate(estimate::Args),
    Decisions(decisions::Args),
    Efficiency(efficiency::Args),
    Export(export::Args),
    Simulate(simulate::Args),
    Plan(plan::Args),
    Strata(strata::Args),
    Topology(topology::Args),
    Timesteps(timesteps::Args),
    Check(check::Args),
    Whatif(whatif::Args),
    Logical(logical::Args),
    Skeleton(skeleton::Args),
    Query(query::Args),
    Diff(Box<diff::Args>),
    Scaling(scaling::Args),
    History(history::Args),
    Record(record::Args),
    Report(report::Args),
    Top(top::Args),
    Recover(recover::Args),
    Doctor(doctor::Args),
    #[command(hide = true)]
    Pages(pages::Args),
    #[command(hide = true)]
    CopyJournals(copying::Args),
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(all) = help::asked(&words) {
        let text = help::text(&Cli::command(), all);
        let printed = output::print(|out| std::io::Write::write_all(out, text.as_bytes()));
        return printed.map_or_else(|error| failure::report(&error), |()| ExitCode::SUCCESS);
    }
    let cli = match Cli::try_parse_from(diff::rewritten(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &Cli::command()),
    };
    let outcome = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Exec(args) => exec::exec(args).or_else(|error| failure::once(&error)),
        Command::Info(args) => info::info(&args),
        Command::Decode(args) => decode::decode(&args),
        Command::Estimate(args) => estimate::estimate(&args),
        Command::Decisions(args) => decisions::decisions(&args),
        Command::Efficiency(args) => efficiency::efficiency(&args),
        Command::Export(args) => export::export(&args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Strata(args) => strata::strata(&args),
        Command::Topology(args) => topology::topology(&args),
        Command::Timesteps(args) => timesteps::timesteps_of(&args),
        Command::Check(args) => check::check_of(&args),
        Command::Whatif(args) => whatif::whatif(&args),
        Command::Logical(args) => logical::logical(&args),
        Command::Skeleton(args) => skeleton::write(&args),
        Command::Query(args) => query::query(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Scaling(args) => scaling::scaling_of(&args),
        Command::History(args) => history::history(&args),
        Command::Record(args) => record::record(&args),
        Command::Report(args) => report::report(&args),
        Command::Top(args) => top::top(&args),
        Command::Recover(args) => recover::recover(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::CopyJournals(args) => copying::copy(&args),
        Command::Pages(args) => pages::write(&args, &Cli::command()),
    };
    outcome.unwrap_or_else(|error| failure::report(&error))
}
