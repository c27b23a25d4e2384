//! Programs of processes, from their command lines: how the programs of a job are told apart and called.

use std::path::Path;

/// Interpreters, by the beginnings of their names: the program is the script that they run.
const INTERPRETERS: [&str; 8] = ["python", "pypy", "perl", "ruby", "julia", "Rscript", "lua", "octave"];
/// Options of theirs that take the next word with them.
const WITH_VALUE: [&str; 6] = ["-W", "-X", "-I", "-J", "-L", "-p"];

/// The program of the command line `command`, as it stands there: the first word or, of an interpreter, the script or
/// module that it runs. Empty for an empty command line.
pub fn program_of(command: &[String]) -> String {
    let Some((first, rest)) = command.split_first() else { return String::new() };
    let name = file_name(first);
    if !INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter)) {
        return first.clone();
    }
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            // Python's: the module is run.
            "-m" => return words.next().map_or(name.to_owned(), |module| format!("{name} -m {module}")),
            // A text on the command line, or standard input.
            "-c" | "-e" | "-" => return name.to_owned(),
            option if WITH_VALUE.contains(&option) => _ = words.next(),
            option if option.starts_with('-') => {}
            script => return script.to_owned(),
        }
    }
    name.to_owned()
}

/// Names of `programs`: each its file's name, or the whole text where several share a file's name.
pub fn names<'a>(programs: &[&'a str]) -> Vec<&'a str> {
    let called =
        |program: &'a str| programs.iter().filter(|other| file_name(other) == file_name(program)).count();
    programs.iter().map(|&program| if called(program) > 1 { program } else { file_name(program) }).collect()
}

/// Last part of a path; all of a text that is none.
pub fn file_name(path: &str) -> &str {
    // The name of a module follows its interpreter's.
    if path.contains(" -m ") {
        return path;
    }
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_stand_for_their_interpreters() {
        for (line, program) in [
            ("", ""),
            ("./a -x 1", "./a"),
            ("/opt/bin/solver", "/opt/bin/solver"),
            ("python3 ring.py 5", "ring.py"),
            ("/usr/bin/python3.12 -u -W ignore dir/ring.py -m 5", "dir/ring.py"),
            ("python3 -m mpi4py ring.py", "python3 -m mpi4py"),
            ("python3 -c pass", "python3"),
            ("julia --project=. heat.jl", "heat.jl"),
            ("python3 -m", "python3"),
            ("python3", "python3"),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(program_of(&words), program, "{line}");
        }
    }

    #[test]
    fn names_are_as_long_as_they_must_be() {
        assert_eq!(names(&["./a", "/opt/b", "python3 -m x/y"]), ["a", "b", "python3 -m x/y"]);
        assert_eq!(names(&["old/a", "new/a", "b"]), ["old/a", "new/a", "b"]);
        assert_eq!(names(&[""]), [""]);
    }
}
