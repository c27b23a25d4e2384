//! `ampl pages`: what an installation has for shells and `man`, made of the command line's definition.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap::builder::{Resettable, Str};
use clap_complete::Shell;

use crate::failure::{Failure, OTHER};

/// Write man pages and completions of shells into a directory, as `cargo xtask dist` does.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl pages /opt/ampl/share")]
pub struct Args {
    /// Directory: man/man1, bash-completion/completions, zsh/site-functions and fish/vendor_completions.d go into it
    directory: PathBuf,
}

/// Writes a page for `command` and each of its own, and the completions.
///
/// # Errors
/// A [`Failure`] of status 1 where a file cannot be written.
pub fn write(args: &Args, command: &Command) -> anyhow::Result<ExitCode> {
    let mut command = shown(command);
    let failed = |place: &PathBuf, error: std::io::Error| {
        let what = format!("cannot write: {error}");
        Failure::message(OTHER, what, place.display(), "name a directory that you may write")
    };
    let directory = |name: &str| -> anyhow::Result<PathBuf> {
        let path = args.directory.join(name);
        fs::create_dir_all(&path).map_err(|error| failed(&path, error))?;
        Ok(path)
    };
    let write = |path: PathBuf, write: &mut dyn FnMut(&mut File) -> std::io::Result<()>| {
        File::create(&path).and_then(|mut file| write(&mut file)).map_err(|error| failed(&path, error))
    };
    let completions = [
        (Shell::Bash, "bash-completion/completions", "ampl"),
        (Shell::Zsh, "zsh/site-functions", "_ampl"),
        (Shell::Fish, "fish/vendor_completions.d", "ampl.fish"),
    ];
    for (shell, place, name) in completions {
        let path = directory(place)?.join(name);
        // It writes into memory: as a stream, its errors would end the command.
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "ampl", &mut text);
        write(path, &mut |file| std::io::Write::write_all(file, &text))?;
    }
    let manual = directory("man/man1")?;
    command.build();
    let page = |command: &Command| {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let man = clap_mangen::Man::new(command.clone());
        write(manual.join(format!("{name}.1")), &mut |file| man.render(file))
    };
    page(&command)?;
    command.get_subcommands().filter(|own| own.get_name() != "help").try_for_each(page)?;
    Ok(ExitCode::SUCCESS)
}

/// `command` without hidden commands: completions would offer them.
fn shown(command: &Command) -> Command {
    let own = command.get_subcommands().filter(|own| !own.is_hide_set()).map(shown);
    let new =
        Command::new(command.get_name().to_owned()).args(command.get_arguments().cloned()).subcommands(own);
    new.version(Resettable::from(command.get_version().map(|text| Str::from(text.to_owned()))))
        .about(Resettable::from(command.get_about().cloned()))
        .long_about(Resettable::from(command.get_long_about().cloned()))
        .after_help(Resettable::from(command.get_after_help().cloned()))
}
