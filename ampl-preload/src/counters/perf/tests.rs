use super::*;
use ampl_core::config::perf::by_name;

fn ask(names: &[&str]) -> Vec<Asked<&'static Counter>> {
    names.iter().enumerate().map(|(column, name)| Asked { column, what: by_name(name).unwrap() }).collect()
}

/// Does `count` in a process in which the test `name` is alone: of a moment in which another's thread ends nothing is
/// known, and what others do is counted, too.
fn alone(name: &str, count: fn() -> Option<()>) {
    const ALONE: &str = "AMPL_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        // The harness may have a thread that has just ended.
        return assert!((0..20).any(|_| count().is_some()), "always disturbed");
    }
    let this = std::env::current_exe().unwrap();
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let mut command = std::process::Command::new(this);
    let alone = command.args([&name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&alone.stdout), String::from_utf8_lossy(&alone.stderr));
    assert!(alone.status.success() && said.contains("1 passed"), "{said}");
}

/// Reads `counters`; none where a thread was just ending.
fn calm<const N: usize>(counters: &mut PerfCounters) -> Option<[Option<f64>; N]> {
    let mut values = [None; N];
    counters.take(&mut values);
    counters.groups.iter().all(|group| !group.missed).then_some(values)
}

#[test]
fn all_threads_are_counted_and_no_child() {
    alone("all_threads_are_counted_and_no_child", count_all_threads);
}

fn count_all_threads() -> Option<()> {
    const PAGES: usize = 20_000;
    let (told, started) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let before = std::thread::spawn(move || {
        told.send(()).unwrap();
        wait.recv().unwrap();
        touch(PAGES);
    });
    started.recv().unwrap();
    let (mut counters, refused) = PerfCounters::open(&ask(&["task-clock", "page-faults"]));
    assert_eq!(refused, []);
    assert!(counters.groups.len() >= 2, "one for the thread that was there");
    assert!(counters.groups.iter().all(|group| group.descriptors.len() == 2), "read with one call");
    let lowest = counters.groups.iter().flat_map(|group| &group.descriptors).map(AsRawFd::as_raw_fd).min();
    assert!(lowest >= Some(ampl_agent::descriptor::FIRST), "{lowest:?}");
    let ready = calm::<2>(&mut counters);
    go.send(()).unwrap();
    before.join().unwrap();
    ready?;
    std::thread::spawn(|| touch(PAGES)).join().unwrap();
    // It touches 256 MiB: more pages than all that is counted here.
    let copy = ["if=/dev/zero", "of=/dev/null", "bs=256M", "count=1", "status=none"];
    std::process::Command::new("dd").args(copy).status().unwrap();
    let values = calm::<2>(&mut counters)?;
    let (own, faults) = (2.0 * PAGES as f64, values[1].unwrap());
    assert!(values[0] > Some(0.0) && (own..1.5 * own).contains(&faults), "{values:?}");
    Some(())
}

#[test]
fn what_the_kernel_does_not_count_is_refused_and_the_rest_goes_on() {
    alone("what_the_kernel_does_not_count_is_refused_and_the_rest_goes_on", count_the_rest);
}

fn count_the_rest() -> Option<()> {
    let strange = Counter { name: "strange", config: 4711, ..*by_name("task-clock").unwrap() };
    let mut asked = ask(&["page-faults"]);
    asked.insert(0, Asked { column: 1, what: Box::leak(Box::new(strange)) });
    let (mut counters, refused) = PerfCounters::open(&asked);
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].metric, "perf.strange");
    calm::<2>(&mut counters)?;
    touch(16);
    let values = calm::<2>(&mut counters)?;
    assert!(values[0] >= Some(16.0), "{values:?}");
    assert_eq!(values[1], None);
    Some(())
}

#[test]
fn every_member_of_a_group_counts_from_the_start() {
    alone("every_member_of_a_group_counts_from_the_start", count_from_the_start);
}

fn count_from_the_start() -> Option<()> {
    const PAGES: usize = 64;
    for _ in 0..200 {
        let (mut counters, refused) = PerfCounters::open(&ask(&["task-clock", "page-faults"]));
        assert_eq!(refused, []);
        let ready = calm::<2>(&mut counters);
        let before: Vec<_> = counters.groups.iter().map(|group| group.before.clone()).collect();
        touch(PAGES);
        ready?;
        let values = calm::<2>(&mut counters)?;
        assert!(values[1] >= Some(PAGES as f64), "{values:?} {before:?} {:?}", counters.groups);
    }
    Some(())
}

/// Touches as many new pages.
fn touch(pages: usize) {
    let (bytes, access) = (pages * 4096, libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: memory of its own, written within its bounds, and given back.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0).cast::<u8>();
        libc::madvise(memory.cast(), bytes, libc::MADV_NOHUGEPAGE);
        (0..pages).for_each(|page| memory.add(page * 4096).write_volatile(1));
        libc::munmap(memory.cast(), bytes);
    }
}

#[test]
fn what_a_thread_counted_that_has_ended_stays() {
    alone("what_a_thread_counted_that_has_ended_stays", count_an_ended_thread);
}

fn count_an_ended_thread() -> Option<()> {
    let (told, started) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let ending = std::thread::spawn(move || {
        told.send(()).unwrap();
        wait.recv().unwrap();
        touch(64);
    });
    started.recv().unwrap();
    let (mut counters, refused) = PerfCounters::open(&ask(&["task-clock", "page-faults"]));
    assert_eq!(refused, []);
    let ready = calm::<2>(&mut counters);
    go.send(()).unwrap();
    ending.join().unwrap();
    ready?;
    for least in [64.0, 0.0] {
        let values = calm::<2>(&mut counters)?;
        assert!(values[0] > Some(0.0) && values[1] >= Some(least), "{values:?} {:?}", counters.groups);
    }
    Some(())
}

#[test]
fn a_descriptor_that_the_program_closes_is_not_read_again() {
    let (mut counters, _) = PerfCounters::open(&ask(&["task-clock"]));
    let mut values = [None; 1];
    counters.take(&mut values);
    assert!(values[0].is_some() || counters.groups.iter().any(|group| group.missed));
    let number = counters.groups[0].descriptors[0].as_raw_fd();
    let other = fs::File::open("/dev/zero").unwrap();
    // SAFETY: what a program may do that closes what it does not know.
    unsafe { libc::dup2(other.as_raw_fd(), number) };
    counters.take(&mut values);
    assert_eq!(values, [None]);
    assert!(counters.groups[0].lost);
}

#[test]
fn turns_are_scaled_to_the_whole() {
    assert_eq!((scale(0, 0), scale(10, 10), scale(10, 0)), (Some(1.0), Some(1.0), None));
    assert_eq!(scale(30, 10), Some(3.0));
}
