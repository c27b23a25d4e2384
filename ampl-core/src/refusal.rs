//! Reasons why this machine does not count something, with the action to take.
//!
//! `ampl run`, `ampl doctor` and the ranks themselves ask the kernel, each on its own; what it answers is
//! explained here, once.

use crate::config::perf::{Counter, Kind};

/// Answer of an operating system to `perf_event_open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `errno`, as Linux numbers it.
    pub errno: i32,
    /// `/proc/sys/kernel/perf_event_paranoid`, where it can be read.
    pub paranoid: Option<i64>,
    /// `true` if the processor reports a hypervisor below it.
    pub virtual_machine: bool,
}

/// Reason why a metric cannot be measured, as the parts of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `perf.cycles`
    pub metric: String,
    /// `no hardware counters in this virtual machine`
    pub why: String,
    /// Alternative to `optional = true`; empty where nothing else helps.
    pub instead: String,
}

/// `true` if `counter` counts events that happen only inside the kernel.
///
/// All others count user code only, so that they mean the same on every machine, whatever it permits.
pub fn is_in_kernel(counter: &Counter) -> bool {
    counter.kind == Kind::Software && matches!(counter.name, "context-switches" | "cpu-migrations")
}

/// Highest `perf_event_paranoid` that permits `counter`: 2 for user code, 1 for the kernel.
fn highest_level(counter: &Counter) -> i64 {
    if is_in_kernel(counter) { 1 } else { 2 }
}

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const EMFILE: i32 = 24;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

impl Refusal {
    /// The kernel's refusal to count `counter`.
    pub fn of(counter: &Counter, answer: Answer) -> Self {
        let hardware = counter.kind == Kind::Hardware;
        let software = || if hardware { "use perf.task-clock" } else { "" }.to_owned();
        let (why, instead) = match answer.errno {
            ENOENT | ENODEV | EOPNOTSUPP | EINVAL if hardware => {
                let why = match answer.virtual_machine {
                    true => "no hardware counters in this virtual machine",
                    false => "its processor or kernel has no such counter",
                };
                (why.to_owned(), software())
            }
            EPERM | EACCES => forbidden(counter, answer.paranoid),
            ENOSYS => ("the kernel has no perf_event".to_owned(), String::new()),
            EMFILE => ("no file descriptor is left".to_owned(), "raise 'ulimit -n'".to_owned()),
            errno => (format!("the kernel answers with error {errno}"), software()),
        };
        Self { metric: format!("perf.{}", counter.name), why, instead }
    }

    /// Refusal to count `event` where there is no PAPI.
    pub fn without_papi(event: &str) -> Self {
        Self {
            metric: format!("papi.{event}"),
            why: "no libpapi.so is found here".into(),
            instead: "install PAPI, with its directory in LD_LIBRARY_PATH where that is not a usual one"
                .into(),
        }
    }

    /// Action to take.
    pub fn fix(&self) -> String {
        match self.instead.as_str() {
            "" => "set optional = true".into(),
            instead => format!("set optional = true or {instead}"),
        }
    }
}

/// Reason and action where the kernel has the counter and forbids it.
fn forbidden(counter: &Counter, paranoid: Option<i64>) -> (String, String) {
    let highest = highest_level(counter);
    match paranoid {
        Some(level) if level > highest => (
            format!(
                "/proc/sys/kernel/perf_event_paranoid is {level}: from {} on it is forbidden",
                highest + 1
            ),
            format!("have the administrator set kernel.perf_event_paranoid to {highest}"),
        ),
        _ => (
            "the kernel forbids it, as the seccomp filters of containers do".to_owned(),
            "let the container make the system call perf_event_open".to_owned(),
        ),
    }
}

impl std::fmt::Display for Refusal {
    /// As one line, without `ampl:` before it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this machine cannot count {} ({}): {}", self.metric, self.why, self.fix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::perf::by_name;

    fn said(name: &str, errno: i32, paranoid: i64, virtual_machine: bool) -> String {
        let answer = Answer { errno, paranoid: Some(paranoid), virtual_machine };
        Refusal::of(by_name(name).unwrap(), answer).to_string()
    }

    #[test]
    fn every_refusal_says_why_and_what_to_do() {
        assert_eq!(
            said("cycles", ENOENT, 2, true),
            "this machine cannot count perf.cycles (no hardware counters in this virtual machine): \
             set optional = true or use perf.task-clock"
        );
        assert!(said("cycles", ENOENT, 2, false).contains("(its processor or kernel has no such counter)"));
        assert!(said("cycles", EACCES, 3, false).contains("perf_event_paranoid is 3: from 3 on"));
        assert!(said("context-switches", EACCES, 2, false).contains("kernel.perf_event_paranoid to 1"));
        assert!(said("task-clock", EPERM, 1, false).contains("seccomp"));
        assert!(said("task-clock", ENOSYS, 1, false).ends_with("): set optional = true"));
        // Without PAPI there are no commands of PAPI either.
        let without = Refusal::without_papi("PAPI_FP_INS").to_string();
        assert!(
            without.starts_with("this machine cannot count papi.PAPI_FP_INS (no libpapi.so"),
            "{without}"
        );
        assert!(without.contains("or install PAPI") && !without.contains("papi_avail"), "{without}");
    }
}
