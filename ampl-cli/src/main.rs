//! The command line of ampl. Finds `libampl.so` by path; links no MPI.
#![forbid(unsafe_code)]

#[macro_use(tell)]
extern crate ampl_launch;

mod check;
mod communicators;
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
        Err(error) => return usage(&error),
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
    };
    outcome.unwrap_or_else(|error| failure::report(&error))
}

/// Prints help to stdout, and mistakes in the form of every other message; 2 for mistakes.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    // Without arguments clap calls the help an error, and it is one: there was no command.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && std::env::args_os().len() < 2 {
        tell!("{}", help::text(&Cli::command(), false).trim_end());
        return ExitCode::from(failure::USAGE);
    }
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 });
    }
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(hint) = hint::misplaced(error, &words) {
        return failure::report(&hint);
    }
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message = message.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let tip = rest.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    tell!("ampl: {message} (command line): {}", tip.unwrap_or("see 'ampl --help' or 'ampl COMMAND --help'"));
    ExitCode::from(failure::USAGE)
}
