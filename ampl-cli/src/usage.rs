//! Mistakes on the command line.

use std::process::ExitCode;

use ampl_core::config::keys::{self, KEYS};
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::{failure, help, hint};

/// Prints help to stdout, and mistakes in the form of every other message; 2 for mistakes.
pub fn report(error: &clap::Error, command: &clap::Command) -> ExitCode {
    // Without arguments clap calls the help an error, and it is one: there was no command.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && std::env::args_os().len() < 2 {
        notice!("{}", help::text(command, false).trim_end());
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
    // "to pass it as a value" is for commands that take words of any form.
    let tip = tip.filter(|tip| !tip.starts_with("to pass ")).map(str::to_owned);
    let name = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let hint = setting(error, &name).or(tip).or_else(|| meant(error, command));
    let hint = hint.unwrap_or_else(|| match command.find_subcommand(&name) {
        Some(_) => format!("see 'ampl {name} --help'"),
        None => "see 'ampl --help' or 'ampl COMMAND --help'".into(),
    });
    notice!("ampl: {message} (command line): {hint}");
    ExitCode::from(failure::USAGE)
}

/// The setting of that name, where an option of `ampl run` or `ampl exec` is a key of job files.
fn setting(error: &clap::Error, command: &str) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || !["run", "exec"].contains(&command) {
        return None;
    }
    let name = option.strip_prefix("--")?.split('=').next()?.replace('-', "_");
    let mut keys = KEYS.iter().filter(|key| key.name == name || key.path() == name);
    let key = keys.next().filter(|key| !keys::table(key.table).is_some_and(|table| table.many))?;
    keys.next().is_none().then(|| format!("it is a key of job files; write '--set {}=VALUE'", key.path()))
}

/// The command whose name is nearest to one that there is not.
fn meant(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let names = command.get_subcommands().map(clap::Command::get_name);
    keys::nearest(name, names).map(|meant| format!("did you mean '{meant}'?"))
}
