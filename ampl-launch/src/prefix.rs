//! Programs that start another one whose command line ends theirs: `timeout 20 mpirun …`, `numactl -l ./app`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::environment::PRELOAD;
use crate::options::{Options, Step, Syntax};

/// A program of that kind.
#[derive(Debug)]
struct Prefix {
    name: &'static str,
    options: Options,
    /// Words between its options and the program.
    operands: usize,
}

const fn prefix(name: &'static str, flags: &'static str, one: &'static str, operands: usize) -> Prefix {
    let syntax = Syntax::Getopt { attached: "" };
    Prefix { name, options: Options { syntax, flags, one, two: "", files: "" }, operands }
}

/// From the manual pages of coreutils 9, util-linux 2.38, numactl 2.0 and GNU time 1.9.
const PREFIXES: &[Prefix] = &[
    prefix(
        "env",
        "i ignore-environment 0 null v debug block-signal default-signal ignore-signal list-signal-handling",
        "u unset C chdir",
        0,
    ),
    prefix("timeout", "foreground preserve-status p f v verbose", "k kill-after s signal", 1),
    // The digits are the form of old: `nice -10`.
    prefix("nice", "0 1 2 3 4 5 6 7 8 9", "n adjustment", 0),
    prefix("nohup", "", "", 0),
    prefix("setsid", "c ctty f fork w wait", "", 0),
    prefix("time", "a append p portability q quiet v verbose", "f format o output", 0),
    prefix(
        "numactl",
        "a all b balancing l localalloc",
        "C physcpubind i interleave m membind N cpunodebind p preferred P preferred-many w weighted-interleave",
        0,
    ),
    prefix("taskset", "a all-tasks c cpu-list", "", 1),
    prefix("stdbuf", "", "i input o output e error", 0),
    prefix("ionice", "t ignore", "c class n classdata", 0),
    prefix(
        "chrt",
        "a all-tasks b batch d deadline f fifo i idle o other r rr R reset-on-fork v verbose",
        "T sched-runtime P sched-period D sched-deadline",
        1,
    ),
];

/// A prefix as it stands in a command line.
struct Layer<'a> {
    prefix: &'static Prefix,
    options: &'a [OsString],
    /// Index of the first word behind its options.
    behind_options: usize,
    /// Index of the first word behind its operands: of the program that it starts.
    program: usize,
}

/// The prefix that `argv` begins with at `at`; `None` where there is none, or its program cannot be found.
fn layer(argv: &[OsString], at: usize) -> Option<Layer<'_>> {
    let name = Path::new(argv.get(at)?).file_name()?;
    let prefix = PREFIXES.iter().find(|prefix| name == prefix.name)?;
    let mut index = at + 1;
    while let Some(word) = argv.get(index) {
        match prefix.options.step(word).ok()? {
            // A lone dash is `env -i`.
            Step::Program if word == "-" && prefix.name == "env" => index += 1,
            Step::Program => break,
            Step::End => {
                index += 1;
                break;
            }
            Step::Option { values } => index += 1 + values,
        }
    }
    let behind_options = index;
    let mut program = index + prefix.operands;
    if prefix.name == "env" {
        program += argv.get(index..)?.iter().take_while(|word| assigns(word)).count();
    }
    let options = argv.get(at + 1..behind_options)?;
    (program < argv.len()).then_some(Layer { prefix, options, behind_options, program })
}

/// Index of the first word of `argv` that is not a prefix's: where the launcher or the program itself stands.
pub fn behind(argv: &[OsString]) -> usize {
    let mut at = 0;
    while let Some(layer) = layer(argv, at) {
        at = layer.program;
    }
    at
}

/// `argv` with `library` first in every `LD_PRELOAD` that an `env` in it sets; one that empties the environment gets
/// all of `variables`.
pub fn with_preload(
    argv: &[OsString],
    library: &Path,
    variables: &[(&'static str, OsString)],
) -> Vec<OsString> {
    let (mut changed, mut at) = (Vec::new(), 0);
    while let Some(layer) = layer(argv, at) {
        changed.extend_from_slice(&argv[at..layer.behind_options]);
        let operands = &argv[layer.behind_options..layer.program];
        match layer.prefix.name {
            "env" => changed.extend(assignments(&layer, operands, library, variables)),
            _ => changed.extend_from_slice(operands),
        }
        at = layer.program;
    }
    changed.extend_from_slice(&argv[at..]);
    changed
}

/// Operands for an `env` with those options, instead of `operands`.
fn assignments(
    layer: &Layer<'_>,
    operands: &[OsString],
    library: &Path,
    variables: &[(&'static str, OsString)],
) -> Vec<OsString> {
    let sets = |name: &str| operands.iter().any(|word| value_of(word, name).is_some());
    let empties = layer.options.iter().any(empties);
    let needed = variables.iter().filter(|(name, _)| !sets(name) && (empties || layer.takes_away(name)));
    let mut words: Vec<OsString> = needed
        .map(|(name, value)| match *name {
            // The inherited value is replaced by ours.
            PRELOAD => assignment(name, library.as_os_str()),
            _ => assignment(name, value),
        })
        .collect();
    words.extend(operands.iter().map(|word| match value_of(word, PRELOAD) {
        Some(value) => assignment(PRELOAD, &first(library, Some(value))),
        None => word.clone(),
    }));
    words
}

impl Layer<'_> {
    /// True where this `env` unsets the variable `name`.
    fn takes_away(&self, name: &str) -> bool {
        let value_is = |word: &OsStr| word == name;
        self.options.windows(2).any(|pair| (pair[0] == "-u" || pair[0] == "--unset") && value_is(&pair[1]))
            || self.options.iter().any(|word| {
                let bytes = word.as_bytes();
                let attached = bytes.strip_prefix(b"--unset=").or_else(|| bytes.strip_prefix(b"-u"));
                attached == Some(name.as_bytes())
            })
    }
}

/// True where the option makes `env` begin with an empty environment.
fn empties(option: &OsString) -> bool {
    let bytes = option.as_bytes();
    let letters = bytes.strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-"));
    option == "--ignore-environment"
        || letters.is_some_and(|letters| {
            // The value of an option may be attached to it.
            let flags = letters.iter().take_while(|letter| !b"uC".contains(letter));
            letters.is_empty() || flags.clone().any(|&letter| letter == b'i')
        })
}

fn assigns(word: &OsString) -> bool {
    word.as_bytes().iter().position(|&byte| byte == b'=').is_some_and(|at| at > 0)
}

fn assignment(name: &str, value: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
}

/// Value that `word` assigns to the variable `name`.
fn value_of<'a>(word: &'a OsStr, name: &str) -> Option<&'a OsStr> {
    let value = word.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    Some(OsStr::from_bytes(value))
}

/// `library`, then the libraries of `existing` without a second copy of it.
pub fn first(library: &Path, existing: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    for other in existing.unwrap_or_default().as_bytes().split(|byte| b": ".contains(byte)) {
        if !other.is_empty() && other != library.as_os_str().as_bytes() {
            value.push(":");
            value.push(OsStr::from_bytes(other));
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_program_stands_behind_its_prefixes() {
        for (prefixes, rest) in [
            ("", "mpirun -n 2 ./a"),
            ("timeout 20", "mpirun"),
            ("timeout -k 5 --signal=INT 1.5h", "mpirun -n 2"),
            ("/usr/bin/time -v -o t.txt nice -n 5", "srun ./a"),
            ("nice -10 nohup", "./a"),
            ("env -u HOME -iv A=b C=d=e", "./a"),
            ("env - A=b", "./a"),
            ("numactl -N 0 --membind=0 --localalloc", "./a x"),
            ("taskset -c 0-3", "./a -c"),
            ("taskset 0x3 stdbuf -oL ionice -c3", "./a"),
            ("setsid -w chrt -f 10", "./a"),
        ] {
            let (prefixes, rest) = (words(prefixes), words(rest));
            assert_eq!(behind(&[prefixes.clone(), rest].concat()), prefixes.len(), "{prefixes:?}");
        }
        // In case of doubt the prefix itself is taken for the program.
        for line in
            ["timeout --new 20 mpirun", "env A=b", "timeout 20", "nice", "env -S x ./a", "taskset -p 1"]
        {
            assert_eq!(behind(&words(line)), 0, "{line}");
        }
        assert_eq!(behind(&[]), 0);
    }

    #[test]
    fn ours_stands_first_in_what_env_sets() {
        let variables: [(&str, OsString); 2] = [(PRELOAD, "l.so:own.so".into()), ("AMPL_DIR", "/r".into())];
        let changed = |line: &str| {
            let changed = with_preload(&words(line), Path::new("l.so"), &variables);
            changed.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        for line in ["./a LD_PRELOAD=x", "env A=b ./a", "nice env -u HOME ./a", "env ./a", "env -S x ./a"] {
            assert_eq!(changed(line), line);
        }
        for (line, expected) in [
            ("env LD_PRELOAD=x.so ./a", "env LD_PRELOAD=l.so:x.so ./a"),
            ("env A=b LD_PRELOAD=x:y nice ./a", "env A=b LD_PRELOAD=l.so:x:y nice ./a"),
            ("timeout 9 env LD_PRELOAD= ./a", "timeout 9 env LD_PRELOAD=l.so ./a"),
            ("env -u LD_PRELOAD ./a", "env -u LD_PRELOAD LD_PRELOAD=l.so ./a"),
            ("env --unset=AMPL_DIR ./a", "env --unset=AMPL_DIR AMPL_DIR=/r ./a"),
            ("env -i A=b ./a", "env -i LD_PRELOAD=l.so AMPL_DIR=/r A=b ./a"),
            ("env - LD_PRELOAD=x ./a", "env - AMPL_DIR=/r LD_PRELOAD=l.so:x ./a"),
            ("env A=b env -vi ./a", "env A=b env -vi LD_PRELOAD=l.so AMPL_DIR=/r ./a"),
            ("env LD_PRELOAD=l.so:x ./a", "env LD_PRELOAD=l.so:x ./a"),
        ] {
            assert_eq!(changed(line), expected);
        }
    }

    #[test]
    fn ours_stands_first_and_once() {
        let with = |existing: &str| first(Path::new("/l/libampl.so"), Some(existing.as_ref()));
        assert_eq!(first(Path::new("/l/libampl.so"), None), "/l/libampl.so");
        assert_eq!(with("a.so:b.so c.so"), "/l/libampl.so:a.so:b.so:c.so");
        assert_eq!(with("a.so:/l/libampl.so"), "/l/libampl.so:a.so");
    }
}
