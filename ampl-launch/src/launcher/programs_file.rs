//! The file that `srun --multi-prog` reads its programs from: ranks and a command line on each line.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::options::{LauncherError, lossy};
use crate::prefix;

/// srun's option.
pub const OPTION: &str = "--multi-prog";

/// A file with something put before every program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Its text.
    pub text: String,
    /// The programs, without prefixes that only start them.
    pub programs: Vec<OsString>,
}

/// The file at `path` with `exec` before every program.
///
/// # Errors
/// A file that cannot be read, and words of `exec` that have no place in a line.
pub fn read(path: &OsStr, exec: &[OsString]) -> Result<Rewritten, LauncherError> {
    let text = std::fs::read_to_string(Path::new(path));
    let text =
        text.map_err(|error| LauncherError::Unreadable { file: lossy(path), why: error.to_string() })?;
    rewritten(&text, exec).ok_or_else(|| LauncherError::ProgramsInFile(OPTION.into()))
}

/// `text` with `exec` behind the ranks of each line; the rest stays as it is. `None` for words of `exec` that a line does
/// not hold.
fn rewritten(text: &str, exec: &[OsString]) -> Option<Rewritten> {
    let exec = exec.iter().map(|word| quoted(word)).collect::<Option<Vec<String>>>()?;
    let exec: String = exec.iter().map(|word| format!("{word} ")).collect();
    let mut found = Rewritten::default();
    let mut goes_on = false;
    for line in text.lines() {
        let begun = line.trim_start();
        let rest = begun.split_once(char::is_whitespace).map(|(_, rest)| rest.trim_start());
        match rest.filter(|_| !goes_on && !begun.starts_with('#')) {
            Some(rest) if !rest.is_empty() => {
                let words = words(rest);
                let program = words.get(prefix::behind(&words)).or(words.first());
                found.programs.extend(program.cloned());
                let ranks = &line[..line.len() - rest.len()];
                found.text.push_str(&format!("{ranks}{exec}{rest}\n"));
            }
            _ => found.text.push_str(&format!("{line}\n")),
        }
        goes_on = line.ends_with('\\') && (goes_on || !begun.starts_with('#'));
    }
    Some(found)
}

/// `word` as one word of a line; `None` where that cannot be written.
fn quoted(word: &OsStr) -> Option<String> {
    let text = word.to_str()?;
    if text.contains(['\n', '\'', '\\']) {
        return None;
    }
    // Slurm puts the task's number in place of %t, and knows single quotes alone.
    let plain =
        !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || "%\"".contains(letter));
    Some(if plain { text.to_owned() } else { format!("'{text}'") })
}

/// Words of a command line as Slurm reads them, without single quotes and backslashes.
fn words(line: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                quote = !quote;
                word.get_or_insert_default();
            }
            '\\' if !quote => word.get_or_insert_default().extend(letters.next()),
            _ if !quote && letter.is_whitespace() => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.map(OsString::from));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn each_line_with_a_program_gets_it() {
        let text = "# ocean and air\n0-31   ./ocean -n 3\n\n 32,40-63\tnice ./my\\ air 'a b' \\\n  %t more\n* ./rest\n64\n";
        let found = rewritten(text, &exec(&["ampl", "exec", "-o", "a b", "--"])).unwrap();
        let expected = "# ocean and air\n0-31   ampl exec -o 'a b' -- ./ocean -n 3\n\n \
                        32,40-63\tampl exec -o 'a b' -- nice ./my\\ air 'a b' \\\n  %t more\n* ampl exec -o 'a b' -- \
                        ./rest\n64\n";
        assert_eq!(found.text, expected);
        assert_eq!(found.programs, exec(&["./ocean", "./my air", "./rest"]));
        assert_eq!(rewritten(text, &[]).unwrap().text, text);
    }

    #[test]
    fn words_that_no_line_holds_are_refused() {
        for word in ["a\nb", "it's", "a\\"] {
            assert_eq!(rewritten("0 ./a\n", &exec(&[word])), None, "{word}");
        }
        let found = rewritten("0 ./a\n", &exec(&["run %t", ""])).unwrap();
        assert_eq!(found.text, "0 'run %t' '' ./a\n");
        assert!(matches!(read("/none/x".as_ref(), &[]), Err(LauncherError::Unreadable { .. })));
    }
}
