//! Limits of the control groups that this process is in.

use std::fs;
use std::path::{Path, PathBuf};

/// A control group with one controller.
enum Group {
    /// Version 2's, with all controllers.
    Unified(PathBuf),
    /// Version 1's, of that controller.
    Separate(PathBuf),
}

/// Thousandths of a processor that the control groups of this process allow it and its like; 0 where they allow all.
pub fn quota() -> u64 {
    quota_below(Path::new("/"))
}

/// Bytes of memory that they allow; `None` where they allow all.
pub fn memory() -> Option<u64> {
    memory_below(Path::new("/"))
}

/// Thousandths of a processor as [`quota`], where `proc` and `sys` are in `root`.
fn quota_below(root: &Path) -> u64 {
    let limit = |group: Group| {
        let words = match group {
            Group::Separate(group) => {
                text(group.join("cpu.cfs_quota_us")) + " " + &text(group.join("cpu.cfs_period_us"))
            }
            Group::Unified(group) => text(group.join("cpu.max")),
        };
        let mut numbers = words.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(quota)), Some(Ok(period))) = (numbers.next(), numbers.next()) else { return None };
        (period > 0).then(|| (quota.saturating_mul(1000) / period).max(1))
    };
    groups(root, "cpu").into_iter().filter_map(limit).min().unwrap_or(0)
}

/// Bytes of memory as [`memory`], where `proc` and `sys` are in `root`.
fn memory_below(root: &Path) -> Option<u64> {
    let limit = |group: Group| {
        let words = match group {
            Group::Separate(group) => text(group.join("memory.limit_in_bytes")),
            Group::Unified(group) => text(group.join("memory.max")),
        };
        words.trim().parse::<u64>().ok()
    };
    // Version 1 writes the largest number of whole pages where there is no limit.
    let limits = groups(root, "memory").into_iter().filter_map(limit);
    limits.filter(|&bytes| bytes < i64::MAX as u64 / 2).min()
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The control groups of this process that may have `controller`, and those around them.
fn groups(root: &Path, controller: &str) -> Vec<Group> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(own)) = (fields.next(), fields.next()) else { continue };
        let around = || Path::new(own.trim_start_matches('/')).ancestors();
        if controllers.is_empty() {
            found.extend(around().map(|group| Group::Unified(root.join("sys/fs/cgroup").join(group))));
        } else if controllers.split(',').any(|one| one == controller) {
            // It is mounted by its own name, by that of all on the line, or both.
            let mut mounts = vec![controller, controllers];
            mounts.dedup();
            for mount in mounts {
                let mount = root.join("sys/fs/cgroup").join(mount);
                found.extend(around().map(|group| Group::Separate(mount.join(group))));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn control_groups_limit_processor_time() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(root.path(), path, text);
        assert_eq!(quota_below(root.path()), 0);
        write("proc/self/cgroup", "0::/job/step\n");
        write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
        assert_eq!(quota_below(root.path()), 0);
        write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
        assert_eq!(quota_below(root.path()), 1500);
        write("sys/fs/cgroup/cpu.max", "50000 100000\n");
        assert_eq!(quota_below(root.path()), 500);
        write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/old\n");
        write("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "-1\n");
        write("sys/fs/cgroup/cpu/old/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota_below(root.path()), 0);
        write("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "300000\n");
        assert_eq!(quota_below(root.path()), 3000);
    }

    #[test]
    fn the_least_memory_limit_holds() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(root.path(), path, text);
        assert_eq!(memory_below(root.path()), None);
        write("proc/self/cgroup", "0::/jobs/one\n");
        write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
        assert_eq!(memory_below(root.path()), None);
        write("sys/fs/cgroup/jobs/memory.max", "2048\n");
        assert_eq!(memory_below(root.path()), Some(2048));
        write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n");
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(memory_below(root.path()), Some(4096));
    }
}
