//! `cargo xtask`: tasks of the workspace besides compiling.

#![forbid(unsafe_code)]

mod bench;
mod codegen;
mod compare;
mod demo;
mod dist;
mod pictures;
mod retries;
mod setup;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  setup              install what demo and test need (apt, when root or sudo without a password)
  demo               set up, build, run LAMMPS on 8 ranks under ampl, print the summary
  test [--quick|--all]
                     set up, then every check; end-to-end runs with fewer, or with more ranks and seeds
  dist               release build into target/dist
  package            the same as a tarball under target/package
  package --files DIRECTORY
                     add to a layout what is in a package beside the programs, as dist does
  bench [NAME] [-- ARGS]
                     the benchmarks, or the one of that name
  codegen [--check]  write the generated code and docs/configuration.md, or check that they are up to date
  compare OLD NEW RUN...
                     what two builds of ampl print and write of the same runs
  pictures           the guide's pictures, of the demonstration's report
  tidy               house rules that the compiler does not check

Examples:
  cargo xtask demo
  cargo xtask test --quick
  cargo xtask bench intercept
  cargo xtask bench overhead -- --program lammps --pairs 9";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["setup"] => setup::run().map(|_| ()),
        ["demo"] => demo::run(),
        ["test"] => test::run(test::Extent::Usual),
        ["test", "--quick"] => test::run(test::Extent::Quick),
        ["test", "--all"] => test::run(test::Extent::All),
        ["dist"] => dist::run().map(|_| ()),
        ["package"] => dist::package::run(),
        ["package", "--files", layout] => dist::add_files(layout.as_ref()),
        ["bench", rest @ ..] => bench::run(rest),
        ["codegen"] => codegen::run(false),
        ["codegen", "--check"] => codegen::run(true),
        ["compare", old, new, runs @ ..] if !runs.is_empty() => compare::run(old, new, runs),
        ["pictures"] => pictures::run(),
        ["tidy"] => tidy::run(),
        ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
