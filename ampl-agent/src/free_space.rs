//! Room that is left for the program: in a file system, and in memory where the file system is made of memory.
//!
//! Journals lie in memory by default. What they take there is missing to the job, which is killed when it has used up
//! its share of the node; so the last quarter of memory is left to the program. MPI keeps its own shared memory in the
//! same file system, allocates it as it is used, and dies of SIGBUS where nothing is left: most of what was free there
//! when the job began is [never taken](Reserve).

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// `f_type` of a file system in memory, statfs(2).
const TMPFS: i64 = 0x0102_1994;
/// Divisor: one part in `LEFT` of memory is not to be taken.
const LEFT: u64 = 4;
/// Of a file system with little more than this free, ampl takes one part in [`SMALL_PART`].
const SMALL: u64 = 1 << 30;
const SMALL_PART: u64 = 8;
/// Size of the buffer for files that are read, bytes: more than they hold up to the number wanted.
const MOST_BYTES: usize = 8192;

/// Bytes of a file system that are left to everybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Bytes that a thread's first blocks leave.
    pub basic: u64,
    /// Bytes that growing blocks leave.
    pub growing: u64,
    /// Bytes that times of calls leave.
    pub times: u64,
}

impl Reserve {
    /// Reserve of a file system of which `free` bytes were free when the job began.
    ///
    /// Half of it, up to 1 GiB seven eighths: a small file system in memory is all that MPI has.
    pub fn of(free: u64) -> Self {
        let basic = free / 2;
        let growing = basic.max((free - free / SMALL_PART).min(SMALL));
        Self { basic, growing, times: growing + (free - growing) / 2 }
    }
}

/// Bytes that the file system of `file` has free for this user; `None` where it does not report them.
pub fn free(file: BorrowedFd<'_>) -> Option<u64> {
    let place = rustix::fs::fstatfs(file).ok().filter(|place| place.f_blocks > 0)?;
    Some(place.f_bavail.saturating_mul(place.f_bsize as u64))
}

/// Files that show how much room there is. They are found once: reading them allocates nothing.
#[derive(Debug)]
pub struct Room {
    node: CString,
    groups: Vec<Group>,
}

/// A control group that the process is in.
#[derive(Debug)]
struct Group {
    limit: CString,
    used: CString,
    statistics: CString,
    /// Name in the statistics of memory that can be reclaimed at once.
    reclaimable: &'static str,
}

impl Room {
    /// Files of this process; `root` is where `proc` and `sys` are.
    pub fn new(root: &Path) -> Self {
        let own = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let groups = own.lines().flat_map(|line| groups(root, line)).collect();
        Self { node: path(root.join("proc/meminfo")), groups }
    }

    /// True where `file` lies in memory and little of that is left once the file has taken another `bytes` bytes.
    ///
    /// Room that cannot be found out is not scarce.
    pub fn is_scarce(&self, file: BorrowedFd<'_>, bytes: u64) -> bool {
        let in_memory = rustix::fs::fstatfs(file).is_ok_and(|place| place.f_type == TMPFS);
        in_memory && self.is_memory_scarce(bytes)
    }

    /// True where the node, or a control group of the process, has little memory left after another `bytes` bytes.
    pub fn is_memory_scarce(&self, bytes: u64) -> bool {
        let of = |name| number_of(&self.node, name).map(|kib| kib.saturating_mul(1024));
        let node = of("MemAvailable:").zip(of("MemTotal:"));
        node.is_some_and(|(left, all)| is_little(left, bytes, all))
            || self.groups.iter().any(|group| group.is_full(bytes))
    }
}

impl Group {
    /// True where the group has used most of its limit; memory that can be reclaimed at once does not count as used.
    fn is_full(&self, bytes: u64) -> bool {
        let (Some(limit), Some(used)) = (number_of(&self.limit, ""), number_of(&self.used, "")) else {
            return false;
        };
        let cached = number_of(&self.statistics, self.reclaimable).unwrap_or(0);
        is_little(limit.saturating_sub(used.saturating_sub(cached)), bytes, limit)
    }
}

fn is_little(left: u64, taken: u64, all: u64) -> bool {
    left.saturating_sub(taken) < all / LEFT
}

/// Memory control groups of a process and their parents, by its line in `/proc/self/cgroup`, of version 2 or 1.
fn groups(root: &Path, line: &str) -> Vec<Group> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(own)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (hierarchy, limit, used, reclaimable) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
        _ if controllers.split(',').any(|one| one == "memory") => {
            let (limit, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
            ("sys/fs/cgroup/memory", limit, used, "total_inactive_file")
        }
        _ => return Vec::new(),
    };
    let mount = root.join(hierarchy);
    let around = Path::new(own.trim_start_matches('/')).ancestors();
    let group = |group: &Path| {
        let file = |name| path(mount.join(group).join(name));
        Group { limit: file(limit), used: file(used), statistics: file("memory.stat"), reclaimable }
    };
    around.map(group).collect()
}

fn path(path: PathBuf) -> CString {
    CString::new(path.into_os_string().into_vec()).unwrap_or_default()
}

/// The number behind `name` in a file of lines of a name and a number; without a name, the number it begins with.
fn number_of(path: &CString, name: &str) -> Option<u64> {
    let file = rustix::fs::open(path.as_c_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let (mut bytes, mut length) = ([0; MOST_BYTES], 0);
    while let Ok(more @ 1..) = rustix::io::read(&file, &mut bytes[length..]) {
        length += more;
    }
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let mut words = text.split_ascii_whitespace();
    let found = name.is_empty() || words.any(|word| word == name);
    found.then(|| words.next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A node with these files.
    struct Node(tempfile::TempDir);

    impl Node {
        fn new() -> Self {
            let node = Self(tempfile::tempdir().expect("a temporary directory"));
            node.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 300 kB\n");
            node
        }

        fn is_scarce(&self) -> bool {
            Room::new(self.0.path()).is_memory_scarce(0)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a writable temporary directory");
            fs::write(path, text).expect("a writable temporary directory");
        }
    }

    #[test]
    fn most_of_a_small_place_is_left_and_half_of_a_large_one() {
        let of = |free| Reserve::of(free).growing;
        assert_eq!([64 << 20, 4 << 30].map(of), [56 << 20, 2 << 30]);
        assert_eq!(of(0), 0);
        // More free never means more left than half of it and a GiB, and less is left of what is read sooner.
        for free in (0..5 << 30).step_by(1 << 20) {
            let Reserve { basic, growing, times } = Reserve::of(free);
            assert!(basic <= growing && growing <= times && times <= free, "{free}");
            assert!(growing >= free / 2 && growing <= (free / 2).max(SMALL), "{free}");
        }
    }

    #[test]
    fn a_node_may_be_short_of_memory() {
        let node = Node::new();
        assert!(!node.is_scarce());
        let room = Room::new(node.0.path());
        assert!(!room.is_memory_scarce(50 << 10) && room.is_memory_scarce(51 << 10));
        node.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 249 kB\n");
        assert!(node.is_scarce());
        assert!(!Room::new(Path::new("/nowhere")).is_memory_scarce(1 << 40));
    }

    #[test]
    fn a_job_may_have_used_up_what_it_may() {
        let node = Node::new();
        node.write("proc/self/cgroup", "0::/slurm/job_7/step_0/task_1\n");
        let job = "sys/fs/cgroup/slurm/job_7";
        node.write(&format!("{job}/step_0/task_1/memory.max"), "max\n");
        node.write(&format!("{job}/step_0/task_1/memory.current"), "800\n");
        node.write(&format!("{job}/memory.max"), "1000\n");
        node.write(&format!("{job}/memory.current"), "700\n");
        assert!(!node.is_scarce());
        node.write(&format!("{job}/memory.current"), "800\n");
        assert!(node.is_scarce());
        node.write(&format!("{job}/memory.stat"), "anon 5\ninactive_file 100\n");
        assert!(!node.is_scarce());
    }

    #[test]
    fn so_may_one_of_the_older_kind() {
        let node = Node::new();
        node.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
        node.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n");
        node.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "751\n");
        assert!(node.is_scarce());
        node.write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 0\ntotal_inactive_file 1\n");
        assert!(!node.is_scarce());
    }
}
