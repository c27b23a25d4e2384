//! Visible results of a job, as far as they are the same every time.

use std::collections::BTreeMap;
use std::path::Path;

/// Visible results of a job: its exit status, output and files.
pub(super) struct Seen {
    /// Exit status, where the launcher's is reliable.
    pub(super) status: Option<String>,
    pub(super) stdout: Vec<String>,
    pub(super) stderr: Vec<String>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Seen {
    /// The first thing that differs, in words.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if let (Some(before), Some(after)) = (&self.status, &other.status)
            && before != after
        {
            return Some(format!("status: {before} became {after}"));
        }
        let texts = [
            ("standard output", &self.stdout, &other.stdout),
            ("standard error", &self.stderr, &other.stderr),
        ];
        for (name, before, after) in texts {
            if before != after {
                let only = |these: &[String], those: &[String]| -> String {
                    these
                        .iter()
                        .filter(|line| !those.contains(line))
                        .map(|line| format!("  {line}\n"))
                        .collect()
                };
                let (gone, new) = (only(before, after), only(after, before));
                return Some(format!("{name}: these lines are gone\n{gone}and these are new\n{new}"));
            }
        }
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        if names(&self.files) != names(&other.files) {
            return Some(format!("files: {:?} became {:?}", names(&self.files), names(&other.files)));
        }
        let changed = self.files.iter().find(|(name, bytes)| other.files[*name] != **bytes)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (before, after) = (text(changed.1), text(&other.files[changed.0]));
        let line = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        Some(format!("file {}: {line:?} ({} and {} bytes)", changed.0, before.len(), after.len()))
    }
}

/// The lines that are the program's or the launcher's, sorted, numbers of processes and addresses left out.
pub(super) fn program_lines(text: &str) -> Vec<String> {
    // The summary is the last thing `ampl run` prints.
    let text = text.split("ampl: run directory ").next().unwrap_or_default();
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with("ampl: ")).map(without_numbers).collect();
    lines.sort_unstable();
    while lines.first().is_some_and(String::is_empty) {
        lines.remove(0);
    }
    lines
}

/// The line without numbers and addresses of this very run.
fn without_numbers(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut process = false;
    for word in line.split(' ') {
        let digits = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let tagged = word.starts_with('[') && word.contains(':') && word.ends_with(']');
        words.push(if tagged || digits.starts_with("0x") || (process && number) {
            "#".into()
        } else {
            word.into()
        });
        process = ["pid", "process"].contains(&digits.to_ascii_lowercase().as_str())
            || (process && word.is_empty());
    }
    words.join(" ")
}

/// Every file below `directory`, by its path from there.
pub(super) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(place) = open.pop() {
        let entries =
            std::fs::read_dir(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("it is below").to_string_lossy().into_owned();
                found.insert(name, std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_no_numbers() {
        let line = without_numbers("[vm:123] rank 4, process 77 (PID 12) at 0x7f");
        assert_eq!(line, "# rank 4, process # (PID # at #");
        assert_eq!(without_numbers("=   PID 12 RUNNING AT 3"), "=   PID # RUNNING AT 3");
    }

    #[test]
    fn lines_of_ampl_are_not_the_programs() {
        let text = "b\nampl: a word\na\n\nampl: run directory x\nranks 7\n";
        assert_eq!(program_lines(text), ["a", "b"]);
    }

    #[test]
    fn differences_are_found() {
        let seen = |status: &str, out: &str, file: &str| Seen {
            status: (status != "unknown").then(|| status.into()),
            stdout: program_lines(out),
            stderr: Vec::new(),
            files: BTreeMap::from([("f".to_owned(), file.as_bytes().to_vec())]),
        };
        let one = seen("0", "a\nb", "x\ny");
        assert!(one.difference(&seen("0", "b\na", "x\ny")).is_none());
        assert!(one.difference(&seen("unknown", "a\nb", "x\ny")).is_none());
        for (other, told) in [
            (seen("1", "a\nb", "x\ny"), "0 became 1"),
            (seen("0", "a\nb\nb", "x\ny"), "standard output"),
            (seen("0", "a\nb", "x\nz"), "(\"y\", \"z\")"),
        ] {
            let difference = one.difference(&other).expect("they differ");
            assert!(difference.contains(told), "{difference}");
        }
    }
}
