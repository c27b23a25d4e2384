//! The node's processors and memory, and limits, as Linux tells them.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use ampl_trace::metadata::{Limits, Machine, cut};

use crate::cgroup;

/// Bytes of `/proc/cpuinfo` that are read: the first processor's. All of it takes milliseconds on a large node.
const OF_CPUINFO: u64 = 4096;

/// The machine that this process runs on.
pub fn machine() -> Machine {
    machine_below(Path::new("/"))
}

fn machine_below(root: &Path) -> Machine {
    let line = |path: &str| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| cut(text.to_owned()))
    };
    let mut first = Vec::new();
    if let Ok(file) = File::open(root.join("proc/cpuinfo")) {
        // What has been read before an error stays.
        let _ = file.take(OF_CPUINFO).read_to_end(&mut first);
    }
    let first = String::from_utf8_lossy(&first);
    let after = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(cut(line.split_once(':')?.1.trim().to_owned()))
    };
    let memory = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let kilobytes = after(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let kernel = [line("proc/sys/kernel/ostype"), line("proc/sys/kernel/osrelease")];
    Machine {
        model: after(&first, "model name"),
        processors: line("sys/devices/system/cpu/online"),
        numa_nodes: line("sys/devices/system/node/online"),
        memory: kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024)),
        system: kernel.into_iter().flatten().reduce(|name, release| format!("{name} {release}")),
    }
}

/// Limits of this process's control groups.
pub fn limits() -> Limits {
    let quota = cgroup::quota();
    Limits { processors: (quota > 0).then_some(quota as f64 / 1000.0), memory: cgroup::memory() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_machine_is_described() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Maker Model 7 @ 2 GHz\nprocessor\t: 1\n";
        let root = root(&[
            ("proc/cpuinfo", &(cpuinfo.to_owned() + &"é".repeat(4000))),
            ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n"),
            ("proc/sys/kernel/ostype", "Linux\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
        ]);
        let machine = machine_below(root.path());
        assert_eq!(machine.model.as_deref(), Some("Maker Model 7 @ 2 GHz"));
        assert_eq!((machine.memory, machine.system.as_deref()), (Some(1_024_000), Some("Linux 6.1.0")));
        assert_eq!((machine.processors.as_deref(), machine.numa_nodes), (Some("0-3"), None));
        assert_eq!(machine_below(&root.path().join("nowhere")), Machine::default());
    }
}
