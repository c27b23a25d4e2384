//! Room that is left for the program: of a file system, and of memory where that is what the file system is made of.
//!
//! Journals lie in memory by default. What they take there is missing to the job, which is killed when it has used up
//! its share of the node; so the last quarter of everything is left to the program.

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// `f_type` of a file system in memory, statfs(2).
const TMPFS: i64 = 0x0102_1994;
/// One part of so many is not to be taken.
const LEFT: u64 = 4;

/// Whether the place of `file` has little room left, or the memory that it is in.
///
/// What cannot be found out is not scarce.
pub fn is_scarce(file: BorrowedFd<'_>) -> bool {
    let Ok(place) = rustix::fs::fstatfs(file) else { return false };
    // Some file systems do not say how large they are.
    let is_small = place.f_blocks > 0 && is_little(place.f_bavail, place.f_blocks);
    is_small || (place.f_type == TMPFS && is_memory_scarce(Path::new("/")))
}

fn is_little(left: u64, all: u64) -> bool {
    left < all / LEFT
}

/// Whether the node has little memory left, or a control group that the process is in; `root` is where `proc` and
/// `sys` are.
fn is_memory_scarce(root: &Path) -> bool {
    let node = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let of = |name| number_of(&node, name).unwrap_or(0);
    if is_little(of("MemAvailable:"), of("MemTotal:")) {
        return true;
    }
    let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    own.lines().any(|line| groups(root, line).iter().any(|group| is_group_full(group)))
}

/// The directories of a control group of memory and of those around it, by its line in `/proc/self/cgroup`.
fn groups(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let hierarchy = match controllers {
        "" => "sys/fs/cgroup",
        _ if controllers.split(',').any(|one| one == "memory") => "sys/fs/cgroup/memory",
        _ => return Vec::new(),
    };
    let mount = root.join(hierarchy);
    let around = Path::new(path.trim_start_matches('/')).ancestors();
    around.map(|group| mount.join(group)).collect()
}

/// Whether a control group, of version 2 or 1, has used most of what it may; what can be reclaimed at once is not used.
fn is_group_full(group: &Path) -> bool {
    let read = |name| fs::read_to_string(group.join(name)).ok();
    let number = |name| read(name)?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"));
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
    let (Some(limit), Some(used)) = (limit, used) else { return false };
    let stat = read("memory.stat").unwrap_or_default();
    let cached = number_of(&stat, "total_inactive_file").or_else(|| number_of(&stat, "inactive_file"));
    is_little(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))), limit)
}

/// The number behind `name` in lines of a name and a number.
fn number_of(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut line| (line.next() == Some(name)).then(|| line.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node as its files tell of it.
    struct Node(PathBuf);

    impl Node {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("ampl-room-{name}-{}", std::process::id()));
            let node = Self(root);
            node.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 300 kB\n");
            node
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a writable temporary directory");
            fs::write(path, text).expect("a writable temporary directory");
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_node_may_be_short_of_memory() {
        let node = Node::new("node");
        assert!(!is_memory_scarce(&node.0));
        node.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 249 kB\n");
        assert!(is_memory_scarce(&node.0));
        assert!(!is_memory_scarce(Path::new("/nowhere")));
    }

    #[test]
    fn a_job_may_have_used_up_what_it_may() {
        let node = Node::new("two");
        node.write("proc/self/cgroup", "0::/slurm/job_7/step_0/task_1\n");
        let job = "sys/fs/cgroup/slurm/job_7";
        node.write(&format!("{job}/step_0/task_1/memory.max"), "max\n");
        node.write(&format!("{job}/step_0/task_1/memory.current"), "800\n");
        node.write(&format!("{job}/memory.max"), "1000\n");
        node.write(&format!("{job}/memory.current"), "700\n");
        assert!(!is_memory_scarce(&node.0));
        node.write(&format!("{job}/memory.current"), "800\n");
        assert!(is_memory_scarce(&node.0));
        node.write(&format!("{job}/memory.stat"), "anon 5\ninactive_file 100\n");
        assert!(!is_memory_scarce(&node.0));
    }

    #[test]
    fn so_may_one_of_the_older_kind() {
        let node = Node::new("one");
        node.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
        node.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n");
        node.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "751\n");
        assert!(is_memory_scarce(&node.0));
        node.write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 0\ntotal_inactive_file 1\n");
        assert!(!is_memory_scarce(&node.0));
    }
}
