//! Processes of this node, as `/proc` shows them.

use std::fmt;
use std::fs;

use ampl_core::process_stat::ProcessStat;

use crate::environment;

/// A process, distinguished from later ones of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its number.
    pub pid: u32,
    /// Start, clock ticks since the boot; 0 where unknown.
    started: u64,
    /// The namespace of the number.
    namespace: u64,
}

impl Stamp {
    /// Stamp of this process.
    pub fn own() -> Self {
        Self::of(std::process::id())
    }

    /// Stamp of process `pid` of this namespace.
    pub fn of(pid: u32) -> Self {
        let started = stat(pid).map_or(0, |stat| stat.started);
        Self { pid, started, namespace: environment::pid_namespace() }
    }

    /// The process that `text` stands for.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').map(|word| word.parse::<u64>().ok());
        let (pid, started, namespace) = (numbers.next()??, numbers.next()??, numbers.next()??);
        Some(Self { pid: u32::try_from(pid).ok()?, started, namespace })
    }

    /// True where it may still run, and for processes of another namespace, of which that is unknown.
    pub fn may_run(&self) -> bool {
        self.namespace != environment::pid_namespace()
            || self.started == 0
            || stat(self.pid).is_some_and(|stat| stat.runs_since(self.started))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.pid, self.started, self.namespace)
    }
}

/// The line of process `pid` of this namespace; `None` where there is none.
fn stat(pid: u32) -> Option<ProcessStat> {
    ProcessStat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// True where `pid` is `above`, or a process that it has started, however far down.
pub fn descends(mut pid: u32, above: u32) -> bool {
    // A loop of numbers that are used again ends, too.
    for _ in 0..1000 {
        if pid == above {
            return true;
        }
        match stat(pid) {
            Some(stat) if stat.parent > 0 => pid = stat.parent,
            _ => return false,
        }
    }
    false
}

/// The numbers of all processes that are shown.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Environment with which process `pid` began, if this one may read it.
pub fn variables(pid: u32) -> Option<Vec<(String, String)>> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let pair = |entry: &[u8]| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    Some(bytes.split(|&byte| byte == 0).filter_map(pair).collect())
}

/// Files that process `pid` has mapped.
pub fn files(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut files: Vec<String> =
        maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_owned())).collect();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_others_of_its_number() {
        let own = Stamp::own();
        assert!(own.may_run() && Stamp::parse(&own.to_string()) == Some(own));
        assert!(!Stamp { started: own.started + 1, ..own }.may_run());
        assert!(Stamp { started: 1, namespace: own.namespace + 1, ..own }.may_run());
        assert_eq!((Stamp::parse("1-2"), Stamp::parse("1-x-3"), Stamp::parse("")), (None, None, None));
    }

    #[test]
    fn processes_descend_from_those_that_started_them() {
        let own = std::process::id();
        // SAFETY: never fails.
        let parent = unsafe { libc::getppid() } as u32;
        assert!(descends(own, own) && descends(own, parent) && !descends(parent, own));
        assert!(all().contains(&own) && files(own).len() > 1);
    }
}
