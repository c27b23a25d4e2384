//! Suggestions for a command line that `ampl run` does not take.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use ampl_core::config::keys::nearest;

use crate::environment;
use crate::failure::{Failure, Kind};

/// The form that goes with every launcher.
pub const BY_HAND: &str = "start it as: LAUNCHER OPTIONS ampl exec -- ./app ARGS";

/// Launchers, as people type them.
const NAMES: [&str; 8] =
    ["mpirun", "mpiexec", "srun", "prterun", "orterun", "mpiexec.hydra", "mpirun.openmpi", "mpiexec.mpich"];

/// The message for a command line whose first word is no launcher that is known.
pub fn unknown(command: &[OsString]) -> Failure {
    let first = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let found = environment::which(Path::new(&first));
    let meant = nearest(&first, NAMES).filter(|_| found.is_none() && !first.contains('/'));
    if let Some(meant) = meant {
        let what = format!("there is no '{first}', and 'ampl run' starts launchers");
        return Failure::message(Kind::Usage, what, "command line", format!("did you mean '{meant}'?"));
    }
    if let Some((what, fix)) = no_word_of_a_program(&first, command) {
        return Failure::message(Kind::Usage, what, "command line", fix);
    }
    let what = match found {
        Some(_) => format!("'{first}' is not a launcher that 'ampl run' knows"),
        None => format!("there is no '{first}', and it is not a launcher that 'ampl run' knows"),
    };
    let words = line(command);
    let fix = format!(
        "write 'ampl run -- mpirun -n 4 {words}', or for a process without a launcher 'ampl exec -- {words}'; with \
         another launcher {BY_HAND}"
    );
    Failure::message(Kind::Usage, what, "command line", fix)
}

/// The fault and its remedy, where `first`, the first word of `command`, cannot be a program.
fn no_word_of_a_program(first: &str, command: &[OsString]) -> Option<(String, String)> {
    let words = line(command);
    if first.starts_with('-') {
        let what = format!("no launcher stands before its option '{first}'");
        return Some((what, format!("write: ampl run -- mpirun {words}")));
    }
    let name = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if first.split_once('=').is_some_and(|(before, _)| !before.is_empty() && name(before)) {
        let what = format!("'{first}' is for a shell to set");
        return Some((what, format!("write: ampl run -- env {words}")));
    }
    let mut inner = first.split_whitespace();
    let launcher = inner.next().is_some_and(|word| NAMES.contains(&word)) && inner.next().is_some();
    launcher.then(|| {
        (format!("'{first}' is one word, in quotes"), format!("write without them: ampl run -- {first}"))
    })
}

/// `words` as one types them, cut where they are many.
pub fn line(words: &[OsString]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = words.iter().take(MOST).map(|word| typed(word)).collect();
    let more = if words.len() > MOST { " ..." } else { "" };
    shown.join(" ") + more
}

/// `words` as one types them, each behind a space.
pub fn joined(words: &[OsString]) -> String {
    words.iter().map(|word| format!(" {}", typed(word))).collect()
}

fn typed(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+,:=@%".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("\"{}\"", text.replace('"', "\\\"")),
    }
}
