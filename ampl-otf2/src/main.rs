//! `libexec/ampl-otf2`, which `ampl export --to otf2` starts: it loads the official OTF2 library, which `ampl` itself, a
//! program without a dynamic linker, cannot.
//!
//! `ampl-otf2 RUN DIRECTORY FROM UNTIL RANKS`: times in nanoseconds since the start, `-` for what is not cut. The messages
//! are those of `ampl`.
#![deny(unsafe_code)]

mod archive;
#[allow(unsafe_code)]
mod library;
mod operations;
mod write;

use std::path::Path;
use std::process::ExitCode;

use ampl_core::units::RankSet;
use ampl_export::Selection;
use ampl_export::place::remedy;
use ampl_reader::directory;

use library::Library;

/// Exit status of a failure without a status of its own, as `ampl` has it.
const OTHER: u8 = 1;
/// Exit status of a library that is not there, as `ampl` has it.
const NOT_FOUND: u8 = 4;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [run, out, from, until, ranks] = &words[..] else {
        eprintln!("ampl: this program is for ampl itself (ampl-otf2): use 'ampl export RUN --to otf2'");
        return ExitCode::from(2);
    };
    let (run, out) = (Path::new(run), Path::new(out));
    let selection = selection(from, until, ranks);
    let library = match Library::open() {
        Ok(library) => library,
        Err(tried) => {
            eprintln!(
                "ampl: the OTF2 library cannot be loaded ({tried}): install OTF2 3 (Debian: otf2-tools), or add its \
                 directory to LD_LIBRARY_PATH"
            );
            return ExitCode::from(NOT_FOUND);
        }
    };
    let trace = match directory::read(run) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("ampl: {error} ({}): name a run directory or its trace.ampl", run.display());
            return ExitCode::from(OTHER);
        }
    };
    let Some(plan) = directory::plan(&trace.run) else {
        eprintln!(
            "ampl: the run's configuration cannot be read ({}): keep run.toml beside the journals",
            run.display()
        );
        return ExitCode::from(OTHER);
    };
    match write::write(&library, &trace, &plan, &selection, out) {
        Ok(written) => {
            // For `ampl`, which tells people.
            println!(
                "{} {} {} {}",
                written.calls.rows, written.calls.untimed, written.calls.damaged, written.messages
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ampl: cannot write: {error} ({}): {}", out.display(), remedy(&error));
            ExitCode::from(OTHER)
        }
    }
}

fn selection(from: &str, until: &str, ranks: &str) -> Selection {
    let ranks = (ranks != "-").then(|| RankSet::parse(ranks).unwrap_or_default());
    Selection::new(from.parse().ok(), until.parse().ok(), ranks)
        .expect("ampl has checked that it has a length")
}
