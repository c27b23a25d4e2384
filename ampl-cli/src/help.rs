//! `ampl --help`: commands in groups, and `--help --all`.

use std::ffi::OsString;
use std::fmt::Write;

use clap::Command;

/// Commands that most users need, by what they are for. All others are under `--help --all`.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "exec", "doctor", "top", "recover"]),
    ("Understand", &["info", "report", "efficiency", "query", "topology"]),
    ("Compare", &["diff", "scaling", "history"]),
    ("Tune", &["plan", "estimate"]),
    ("Take away", &["export", "decode", "check"]),
];

/// True with `--all`, where `words`, behind the program's name, ask for help on no command; else `None`.
pub fn asked(words: &[OsString]) -> Option<bool> {
    let is = |word: &OsString, names: &[&str]| names.iter().any(|name| word == name);
    let help = words.iter().filter(|word| is(word, &["--help", "-h", "help"])).count();
    let all = words.iter().filter(|word| is(word, &["--all"])).count();
    (help > 0 && help + all == words.len()).then_some(all > 0)
}

/// The help on `command` as a whole, with `all` of its commands.
pub fn text(command: &Command, all: bool) -> String {
    let about = |name: &str| -> Option<String> {
        let found =
            command.get_subcommands().find(|found| found.get_name() == name && !found.is_hide_set())?;
        Some(found.get_about().map(ToString::to_string).unwrap_or_default())
    };
    let mut out = String::new();
    let head = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "{head}\n\nUsage: ampl COMMAND …\n");
    let mut group = |title: &str, names: &[&str]| {
        let _ = writeln!(out, "{title}:");
        for (name, about) in names.iter().filter_map(|&name| Some((name, about(name)?))) {
            let _ = writeln!(out, "  {name:<11} {about}");
        }
        out.push('\n');
    };
    for (title, names) in GROUPS {
        group(title, names);
    }
    let named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let shown = command.get_subcommands().filter(|found| !found.is_hide_set()).map(Command::get_name);
    let others: Vec<&str> = shown.filter(|name| !named(name)).collect();
    if all {
        group("More", &others);
    }
    out.push_str("Options:\n  -h, --help     Print help; of a command: ampl COMMAND --help\n");
    out.push_str("      --all      With --help: print all commands\n");
    out.push_str("  -V, --version  Print version\n\nExample:\n  ampl run -- mpirun -n 8 ./app input.txt\n");
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn groups_have_commands_that_there_are_and_all_has_every_one() {
        let command = crate::Cli::command();
        let (some, all) = (text(&command, false), text(&command, true));
        let has = |text: &str, name: &str| text.lines().any(|line| line.starts_with(&format!("  {name} ")));
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
            assert!(has(&some, name), "{name}: {some}");
        }
        for found in command.get_subcommands().filter(|found| !found.is_hide_set()) {
            let lines = all.lines().filter(|line| line.starts_with(&format!("  {} ", found.get_name())));
            assert_eq!(lines.count(), 1, "{}: {all}", found.get_name());
        }
        assert!(some.lines().count() < all.lines().count() && !has(&some, "decisions"));
    }

    #[test]
    fn help_on_a_command_is_the_command_s_own() {
        let asked = |words: &str| asked(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert_eq!((asked("--help"), asked("-h"), asked("help")), (Some(false), Some(false), Some(false)));
        assert_eq!((asked("--help --all"), asked("--all help")), (Some(true), Some(true)));
        for words in ["", "--all", "run --help", "help run", "--help run", "run -- mpirun --help"] {
            assert_eq!(asked(words), None, "{words}");
        }
    }
}
