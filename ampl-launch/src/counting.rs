//! Counters that metrics ask for, and this machine's answers.

use std::path::{Path, PathBuf};

use ampl_core::config::perf::{self, Counter, Kind};
use ampl_core::config::{Config, Quantity};
use ampl_core::refusal::{Answer, Refusal, is_in_kernel};
use perf_event::Builder;
use perf_event::events::Software;

use crate::elf::{self, Executable};
use crate::failure::{self, Failure};
use crate::mpi;

/// Prefix of the names of PAPI's library.
const PAPI: &str = "libpapi.so";

/// Refuses a job whose metrics this machine does not measure and which are not optional.
///
/// The answer holds for this node only: ask where ranks run. Of PAPI, this checks only that `programs` will find it;
/// the ranks, which load it, learn what it counts.
///
/// # Errors
/// A usage [`Failure`] naming the first of them.
pub fn check(config: &Config, programs: &[PathBuf]) -> Result<(), Failure> {
    let needed = config.metrics.iter().filter(|metric| !metric.optional);
    for metric in needed {
        let refused = match &metric.quantity {
            Quantity::Perf(name) => perf::by_name(name).and_then(refusal),
            Quantity::Papi(event) => lacks_papi(programs).then(|| Refusal::without_papi(event)),
            _ => None,
        };
        if let Some(refusal) = refused {
            let what = format!("this machine cannot count {}", refusal.metric);
            return Err(Failure::message(failure::Kind::Usage, what, &refusal.why, refusal.fix()));
        }
    }
    Ok(())
}

/// Reason why this user cannot count with `counter` here; `None` if possible.
pub fn refusal(counter: &Counter) -> Option<Refusal> {
    let mut builder = Builder::new(Software::DUMMY);
    let attributes = builder.attrs_mut();
    (attributes.type_, attributes.config) = (counter.kind as u32, counter.config);
    builder.exclude_kernel(!is_in_kernel(counter)).inherit(true);
    let error = builder.build().err()?;
    let answer = Answer {
        errno: error.raw_os_error().unwrap_or(0),
        paranoid: paranoid(),
        virtual_machine: is_virtual(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
    };
    Some(Refusal::of(counter, answer))
}

/// PAPI's library, where the dynamic linker would look first and where systems put it.
pub fn papi() -> Option<PathBuf> {
    let named = |dir: PathBuf| {
        let mut names: Vec<PathBuf> = dir.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
        names.retain(|path| is_papi(path));
        names.into_iter().min()
    };
    mpi::library_directories().into_iter().find_map(named)
}

fn is_papi(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PAPI))
}

/// True where certainly none of `programs` finds PAPI's library: all can be read, none lists it, and this machine
/// has none. Scripts cannot be read, and may set what the dynamic linker searches.
fn lacks_papi(programs: &[PathBuf]) -> bool {
    let without = |program: &PathBuf| {
        Executable::read(program).is_some_and(|executable| !executable.opaque)
            && elf::libraries(program).is_some_and(|libraries| !libraries.iter().any(|path| is_papi(path)))
    };
    // Directories that the system's configuration adds are in the linker's cache, by name.
    let cached = || {
        let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
        cache.windows(PAPI.len()).any(|name| name == PAPI.as_bytes())
    };
    !programs.is_empty() && papi().is_none() && !cached() && programs.iter().all(without)
}

/// `kernel.perf_event_paranoid`.
pub fn paranoid() -> Option<i64> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// Counters of a kind that this machine offers, and the refusals of the others.
pub fn offered(kind: Kind) -> (Vec<&'static str>, Vec<(&'static str, Refusal)>) {
    let (mut counted, mut refused) = (Vec::new(), Vec::new());
    for counter in perf::COUNTERS.iter().filter(|counter| counter.kind == kind) {
        match refusal(counter) {
            None => counted.push(counter.name),
            Some(refusal) => refused.push((counter.name, refusal)),
        }
    }
    (counted, refused)
}

fn is_virtual(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hypervisors_show_themselves() {
        assert!(is_virtual("processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n"));
        assert!(!is_virtual("flags\t\t: fpu\nmodel name\t: hypervisor\n"));
    }

    #[test]
    fn the_kernel_is_asked_and_its_refusal_is_an_error() {
        let faults = perf::by_name("page-faults").unwrap();
        assert_eq!(refusal(faults), None);
        let strange = Counter { name: "strange", config: 4711, ..*faults };
        let refused = refusal(&strange).unwrap();
        assert_eq!(refused.metric, "perf.strange");
        let (counted, refused) = offered(Kind::Software);
        assert!(counted.contains(&"task-clock"), "{refused:?}");
        // Either this machine has hardware counters, or a job is refused that cannot do without.
        let job = |more: &str| {
            let text = format!("[[metric]]\nname = 'perf.cycles'\nrole = 'guide'\n{more}");
            check(&Config::parse(&text).unwrap().0, &[]).map_err(|error| error.to_string())
        };
        assert_eq!(job("optional = true\n"), Ok(()));
        match refusal(perf::by_name("cycles").unwrap()) {
            None => assert_eq!(job(""), Ok(())),
            Some(refusal) => assert_eq!(job(""), Err(format!("ampl: {refusal}"))),
        }
    }

    #[test]
    fn papi_is_missed_where_that_is_certain() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script.sh");
        std::fs::write(&script, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        let this = std::env::current_exe().unwrap();
        let job = |more: &str, programs: &[PathBuf]| {
            let text = format!("[[metric]]\nname = 'papi.PAPI_FP_INS'\nrole = 'guide'\n{more}");
            check(&Config::parse(&text).unwrap().0, programs).map_err(|error| error.to_string())
        };
        assert_eq!(job("optional = true\n", std::slice::from_ref(&this)), Ok(()));
        assert_eq!(job("", &[]), Ok(()), "the program is on another node");
        assert_eq!(job("", &[this.clone(), script]), Ok(()), "a script may set LD_LIBRARY_PATH");
        let without = Err(format!("ampl: {}", Refusal::without_papi("PAPI_FP_INS")));
        assert_eq!(job("", &[this]), if papi().is_none() { without } else { Ok(()) });
    }
}
