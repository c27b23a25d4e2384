//! Clock, memory-backed file system, counters and launchers of this machine.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ampl_core::config::perf::Kind;
use serde::Serialize;

use crate::elf::few;
use crate::launcher::{self, Detected, Flavour};
use crate::{counting, environment};

/// The clock that times are read from.
#[derive(Debug, Serialize)]
pub struct Clock {
    /// `tsc`, `cntvct` or `clock_gettime`.
    pub source: &'static str,
    /// True where the counter runs evenly in every state of the processor.
    pub invariant: bool,
}

impl Clock {
    /// A line about the clock.
    pub fn line(&self) -> String {
        let invariant = if self.invariant { "invariant" } else { "not invariant: clock_gettime is used" };
        format!("{} ({invariant})", self.source)
    }
}

/// A file system.
#[derive(Debug, Serialize)]
pub struct FileSystem {
    /// Mount point.
    pub path: PathBuf,
    /// Its size; null when it is not there.
    pub size_bytes: Option<u64>,
    /// Bytes that an ordinary user may still write; null when it is not there.
    pub free_bytes: Option<u64>,
}

impl FileSystem {
    /// A line about journals in it.
    pub fn line(&self) -> String {
        match (self.size_bytes, self.free_bytes) {
            (Some(size), Some(free)) => {
                format!("{} ({} MiB, {} MiB free)", self.path.display(), size >> 20, free >> 20)
            }
            _ => format!("{} is not there: the run directory is used", self.path.display()),
        }
    }
}

/// A launcher on PATH.
#[derive(Debug, Serialize)]
pub struct Launcher {
    /// Path, as found on PATH.
    pub path: PathBuf,
    /// Kind of launcher; null when `ampl run` does not know it.
    pub flavour: Option<Flavour>,
    /// Version in its own words.
    pub version: String,
}

/// The clock that timing would use.
pub fn clock() -> Clock {
    clock_from(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), std::env::consts::ARCH)
}

fn clock_from(cpuinfo: &str, machine: &str) -> Clock {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag| flags.split_ascii_whitespace().any(|have| have == flag);
    match machine {
        "x86_64" if has("constant_tsc") && has("nonstop_tsc") => Clock { source: "tsc", invariant: true },
        // The architecture promises it for the generic timer.
        "aarch64" => Clock { source: "cntvct", invariant: true },
        _ => Clock { source: "clock_gettime", invariant: false },
    }
}

/// The file system that `journal = "node"` uses.
pub fn journal() -> FileSystem {
    let path = PathBuf::from("/dev/shm");
    let stat = rustix::fs::statvfs(&path).ok();
    FileSystem {
        size_bytes: stat.as_ref().map(|stat| stat.f_blocks * stat.f_frsize),
        free_bytes: stat.as_ref().map(|stat| stat.f_bavail * stat.f_frsize),
        path,
    }
}

/// Counters for metrics.
#[derive(Debug, Serialize)]
pub struct Counters {
    /// Names behind `perf.` that can be counted here.
    pub perf: Vec<&'static str>,
    /// Counters behind `perf.` that cannot be counted here, and why.
    pub refused: Vec<RefusedCounter>,
    /// PAPI's library; null when it is not in the usual places.
    pub papi: Option<PathBuf>,
}

/// A counter that this machine does not offer.
#[derive(Debug, Serialize)]
pub struct RefusedCounter {
    /// Name behind `perf.`.
    pub name: &'static str,
    /// The reason.
    pub why: String,
}

/// The counters that this machine offers, and those it refuses.
pub fn counters() -> Counters {
    let (mut perf, mut refused) = (Vec::new(), Vec::new());
    for kind in [Kind::Hardware, Kind::Software] {
        let (counted, not) = counting::offered(kind);
        perf.extend(counted);
        refused.extend(not.into_iter().map(|(name, refusal)| RefusedCounter { name, why: refusal.why }));
    }
    Counters { perf, refused, papi: counting::papi() }
}

impl Counters {
    /// Lines that list the counters, and the reasons for those that are refused.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.perf.is_empty() {
            lines.push(format!("perf.: {}", self.perf.join(", ")));
        }
        let mut reasons: Vec<&str> = self.refused.iter().map(|refused| refused.why.as_str()).collect();
        reasons.dedup();
        for why in reasons {
            let same = self.refused.iter().filter(|refused| refused.why == why);
            let names: Vec<&str> = same.map(|refused| refused.name).collect();
            lines.push(format!("not {}: {why}", few(&names)));
        }
        lines.push(match &self.papi {
            Some(path) => format!("papi.: {}", path.display()),
            None => "papi.: no libpapi.so in the usual places".into(),
        });
        lines
    }
}

/// Launchers on PATH; names for the same file are listed once.
pub fn launchers() -> Vec<Launcher> {
    let mut seen = BTreeSet::new();
    let names = ["mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.mpich", "mpiexec.hydra", "prterun", "srun"];
    let found = names.iter().filter_map(|name| environment::which(Path::new(name)));
    found
        .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
        .map(|path| {
            let flavour = match launcher::detect(path.as_os_str()) {
                Detected::Launcher(flavour) => Some(flavour),
                _ => None,
            };
            let output = launcher::version(&path).unwrap_or_default();
            Launcher { version: version_line(&output, path.file_name()), flavour, path }
        })
        .collect()
}

/// The words of `output` that name a version.
fn version_line(output: &str, name: Option<&OsStr>) -> String {
    let first = output.lines().next().unwrap_or_default().trim();
    let version = output.lines().find_map(|line| line.trim().strip_prefix("Version:"));
    match version {
        Some(version) => format!("Hydra {}", version.trim()),
        None if first.is_empty() => name.unwrap_or_default().to_string_lossy().into_owned(),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_flags_make_the_counter_trustworthy() {
        let source = |cpuinfo: &str, machine| clock_from(cpuinfo, machine).source;
        assert_eq!(source("flags\t\t: fpu constant_tsc nonstop_tsc\n", "x86_64"), "tsc");
        assert_eq!(source("flags\t\t: fpu constant_tsc\n", "x86_64"), "clock_gettime");
        assert_eq!(source("", "aarch64"), "cntvct");
        assert_eq!(source("", "riscv64"), "clock_gettime");
    }

    #[test]
    fn counters_with_one_reason_share_a_line() {
        let refused = |name| RefusedCounter { name, why: "forbidden".into() };
        let refused = vec![refused("cycles"), refused("instructions")];
        let counters = Counters { perf: vec!["task-clock"], refused, papi: None };
        let lines = counters.lines();
        assert_eq!(lines[..2], ["perf.: task-clock", "not cycles, instructions: forbidden"]);
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn versions_are_one_line() {
        let hydra = "HYDRA build details:\n    Version:                                 4.0.2\n";
        assert_eq!(version_line(hydra, None), "Hydra 4.0.2");
        assert_eq!(version_line("mpirun (Open MPI) 4.1.4\n\nReport", None), "mpirun (Open MPI) 4.1.4");
        assert_eq!(version_line("", Some(OsStr::new("x"))), "x");
    }
}
