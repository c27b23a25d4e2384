//! `perf.*`: the kernel's counters of this process, through `perf_event_open`.
//!
//! The whole process is counted: every thread that exists when MPI_Init returns gets a group of counters of its own,
//! and later threads are counted with the one that started them. One group is read with one system call. Where a plan
//! has more counters than the processor, the kernel takes turns; counts are then scaled up to the whole window.
//!
//! # Source
//! perf_event_open(2), `PERF_FORMAT_GROUP` and "Reading results".

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use ampl_agent::counters::Counters;
use ampl_agent::descriptor::high;
use ampl_core::config::perf::Counter;
use ampl_core::refusal::{Answer, Refusal, is_in_kernel};
use perf_event_open_sys::bindings::{
    PERF_FLAG_FD_CLOEXEC, PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_TOTAL_TIME_ENABLED,
    PERF_FORMAT_TOTAL_TIME_RUNNING, perf_event_attr,
};
use perf_event_open_sys::perf_event_open;

use super::Asked;

/// Words of a reading before its values: how many, time enabled, time running.
const HEAD: usize = 3;
/// Descriptors that counters may take at most, and the share of those that the process may have.
const MOST_DESCRIPTORS: u64 = 512;
const SHARE_OF_DESCRIPTORS: u64 = 4;

/// Counters of the process, by thread that was there when they were opened.
#[derive(Debug, Default)]
pub struct PerfCounters {
    groups: Vec<Group>,
    reading: Vec<u64>,
    columns: Vec<usize>,
}

/// Counters that are read together.
#[derive(Debug)]
struct Group {
    /// The leader, by which all are read, then the others.
    descriptors: Vec<OwnedFd>,
    columns: Vec<usize>,
    ids: Vec<u64>,
    /// The last reading: times and values.
    before: Vec<u64>,
    /// True where the last attempt to read failed: counts since then cannot be divided among windows.
    missed: bool,
    /// True once the program has closed the descriptor: nothing more is read from its number.
    lost: bool,
}

impl PerfCounters {
    /// Starts the counters that are `asked` for, and returns refusals with reasons.
    pub fn open(asked: &[Asked<&'static Counter>]) -> (Self, Vec<Refusal>) {
        let (mut opened, mut refused) = (Self::default(), Vec::new());
        let threads = other_threads();
        if let Some(refusal) = too_many(threads.len() + 1, asked) {
            return (opened, refusal);
        }
        let mut wanted = asked.to_vec();
        let mut own = Vec::new();
        for one in asked {
            if let Err(error) = add(&mut own, one, 0) {
                wanted.retain(|other| other.column != one.column);
                refused.push(Refusal::of(one.what, answer(&error)));
            }
        }
        start(&own);
        opened.groups = own;
        for thread in threads {
            let mut groups = Vec::new();
            // A thread that has ended meanwhile has nothing to count.
            let failed = wanted.iter().find_map(|one| Some((one, add(&mut groups, one, thread).err()?)));
            match failed {
                None => {
                    start(&groups);
                    opened.groups.extend(groups);
                }
                Some((_, error)) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Some((one, error)) => {
                    // Part of a process would be taken for the whole.
                    refused.push(Refusal::of(one.what, answer(&error)));
                    return (Self::default(), refused);
                }
            }
        }
        opened.columns = wanted.iter().map(|one| one.column).collect();
        let longest = opened.groups.iter().map(Group::words).max().unwrap_or(0);
        opened.reading = vec![0; longest];
        (opened, refused)
    }
}

impl Counters for PerfCounters {
    fn take(&mut self, into: &mut [Option<f64>]) {
        for &column in &self.columns {
            into[column] = Some(0.0);
        }
        for group in &mut self.groups {
            group.take(&mut self.reading, into);
        }
    }
}

impl Group {
    fn words(&self) -> usize {
        HEAD + 2 * self.columns.len()
    }

    fn take(&mut self, reading: &mut [u64], into: &mut [Option<f64>]) {
        let words = self.words();
        let reading = &mut reading[..words];
        let read = if self.lost { Reading::Foreign } else { self.read_patiently(reading) };
        self.lost = read == Reading::Foreign;
        let missed = std::mem::replace(&mut self.missed, read == Reading::Busy);
        if read != Reading::Ours {
            self.columns.iter().for_each(|&column| into[column] = None);
            return;
        }
        let known = !missed;
        let scale = scale(reading[1] - self.before[0], reading[2] - self.before[1]).filter(|_| known);
        for (index, &column) in self.columns.iter().enumerate() {
            let value = reading[HEAD + 2 * index];
            let counted = value.saturating_sub(self.before[2 + index]) as f64;
            into[column] = into[column].zip(scale).map(|(sum, scale)| sum + counted * scale);
            self.before[2 + index] = value;
        }
        self.before[..2].copy_from_slice(&reading[1..HEAD]);
    }

    /// As [`read`](Self::read), a few times where the kernel is busy.
    fn read_patiently(&self, reading: &mut [u64]) -> Reading {
        const ATTEMPTS: usize = 32;
        let attempts = std::iter::repeat_with(|| self.read(reading)).take(ATTEMPTS);
        attempts
            .inspect(|read| {
                if *read == Reading::Busy {
                    std::thread::yield_now()
                }
            })
            .find(|read| *read != Reading::Busy)
            .unwrap_or(Reading::Busy)
    }

    /// Fills `reading`.
    fn read(&self, reading: &mut [u64]) -> Reading {
        match read(&self.descriptors[0], reading) {
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Reading::Busy,
            Err(_) => return Reading::Foreign,
            Ok(()) => {}
        }
        // When a thread ends the kernel takes its groups apart: each counter stands alone then, as it was.
        if reading[0] == 1 && self.columns.len() > 1 && !self.read_apart(reading) {
            return Reading::Foreign;
        }
        let ids = reading[HEAD..].iter().skip(1).step_by(2);
        let ours = reading[0] == self.columns.len() as u64
            && ids.eq(&self.ids)
            && reading[1] >= self.before[0]
            && reading[2] >= self.before[1];
        if ours { Reading::Ours } else { Reading::Foreign }
    }

    /// One counter after the other; the times are the leader's. False where one is none of ours.
    fn read_apart(&self, reading: &mut [u64]) -> bool {
        for (index, descriptor) in self.descriptors.iter().enumerate() {
            let mut one = [0; HEAD + 2];
            if read(descriptor, &mut one).is_err() || one[0] != 1 {
                return false;
            }
            if index == 0 {
                reading[..HEAD].copy_from_slice(&one[..HEAD]);
                reading[0] = self.columns.len() as u64;
            }
            reading[HEAD + 2 * index..][..2].copy_from_slice(&one[HEAD..]);
        }
        true
    }
}

/// Result of reading a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Its values.
    Ours,
    /// No values for the moment: a thread that inherited the group is just ending (ECHILD).
    Busy,
    /// The number is now some other file's.
    Foreign,
}

/// Puts a reading of as many counters as the kernel has there into `into`.
fn read(descriptor: &OwnedFd, into: &mut [u64]) -> io::Result<()> {
    // SAFETY: the kernel writes at most as many bytes as `into` has.
    let got = unsafe { libc::read(descriptor.as_raw_fd(), into.as_mut_ptr().cast(), size_of_val(into)) };
    match usize::try_from(got) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(got) if got >= 8 && got as u64 == 8 * into[0].saturating_mul(2).saturating_add(HEAD as u64) => {
            Ok(())
        }
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Factor for a count that ran `running` of `enabled` nanoseconds; `None` if it did not run.
fn scale(enabled: u64, running: u64) -> Option<f64> {
    match (enabled, running) {
        (0, _) => Some(1.0),
        (_, 0) => None,
        _ => Some((enabled as f64 / running as f64).max(1.0)),
    }
}

/// Puts `one` on `thread` (0 for the calling one) into the last of `groups`, or in a new one where the
/// processor cannot count it beside the others.
fn add(groups: &mut Vec<Group>, one: &Asked<&'static Counter>, thread: i32) -> io::Result<()> {
    let leader = groups.last().map(|group| group.descriptors[0].as_raw_fd());
    let beside = leader.map(|leader| open(one.what, thread, leader));
    if let (Some(Ok(descriptor)), Some(group)) = (beside, groups.last_mut()) {
        group.ids.push(id(&descriptor)?);
        group.descriptors.push(descriptor);
        group.columns.push(one.column);
        group.before.push(0);
        return Ok(());
    }
    let descriptor = open(one.what, thread, -1)?;
    let ids = vec![id(&descriptor)?];
    let (descriptors, columns) = (vec![descriptor], vec![one.column]);
    groups.push(Group { descriptors, columns, ids, before: vec![0; 3], missed: false, lost: false });
    Ok(())
}

/// Starts groups, each with all its members at once: one that joins a group already running may stand still
/// until the thread next leaves its processor (seen under Linux 6.18, among software counters).
fn start(groups: &[Group]) {
    for group in groups {
        // SAFETY: a counter of ours; nothing is passed. It can only fail where the thread has ended.
        unsafe { perf_event_open_sys::ioctls::ENABLE(group.descriptors[0].as_raw_fd(), 0) };
    }
}

/// A counter of `thread` in the group of `leader`, or with -1 in one of its own, which is to be [started](start).
fn open(counter: &Counter, thread: i32, leader: RawFd) -> io::Result<OwnedFd> {
    // Children that are processes are none of this rank; kernels before 5.13 count them all the same.
    open_with(counter, thread, leader, true).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => open_with(counter, thread, leader, false),
        _ => Err(error),
    })
}

fn open_with(counter: &Counter, thread: i32, leader: RawFd, threads_only: bool) -> io::Result<OwnedFd> {
    let mut attributes = perf_event_attr::default();
    attributes.type_ = counter.kind as u32;
    attributes.size = size_of::<perf_event_attr>() as u32;
    attributes.config = counter.config;
    attributes.read_format = (PERF_FORMAT_GROUP
        | PERF_FORMAT_ID
        | PERF_FORMAT_TOTAL_TIME_ENABLED
        | PERF_FORMAT_TOTAL_TIME_RUNNING) as u64;
    attributes.set_disabled((leader < 0).into());
    attributes.set_inherit(1);
    attributes.set_inherit_thread(threads_only.into());
    attributes.set_exclude_kernel((!is_in_kernel(counter)).into());
    attributes.set_exclude_hv(1);
    // SAFETY: attributes of the size that they state; any processor.
    let descriptor =
        unsafe { perf_event_open(&raw mut attributes, thread, -1, leader, PERF_FLAG_FD_CLOEXEC.into()) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new, and ours alone.
    Ok(high(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

fn id(descriptor: &OwnedFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: a counter, and a place for its number.
    match unsafe { perf_event_open_sys::ioctls::ID(descriptor.as_raw_fd(), &raw mut id) } {
        0 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Threads of the process but the calling one.
fn other_threads() -> Vec<i32> {
    // SAFETY: has no arguments and cannot fail.
    let own = unsafe { libc::gettid() };
    let names = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&thread| thread != own)
        .collect()
}

/// The refusals, if counting that many threads would take too many of the program's descriptors.
fn too_many(threads: usize, asked: &[Asked<&'static Counter>]) -> Option<Vec<Refusal>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let most = (limit.rlim_cur / SHARE_OF_DESCRIPTORS).min(MOST_DESCRIPTORS);
    let needed = (threads * asked.len()) as u64;
    let refusal = |one: &Asked<&'static Counter>| Refusal {
        metric: format!("perf.{}", one.what.name),
        why: format!(
            "{threads} threads at MPI_Init would take {needed} file descriptors, {most} at most are taken"
        ),
        instead: "start the threads after MPI_Init".into(),
    };
    (needed > most).then(|| asked.iter().map(refusal).collect())
}

/// The kernel's error, and settings that explain it.
fn answer(error: &io::Error) -> Answer {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    Answer {
        errno: error.raw_os_error().unwrap_or(0),
        paranoid: paranoid.and_then(|text| text.trim().parse().ok()),
        // The bit that hypervisors set (AMD64 Architecture Programmer's Manual, vol. 3, CPUID Fn0000_0001).
        virtual_machine: std::arch::x86_64::__cpuid(1).ecx & (1 << 31) != 0,
    }
}

#[cfg(test)]
mod tests;
