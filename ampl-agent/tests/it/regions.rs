//! Regions in the sequence of calls: which ones are recorded, with which times, and of threads that come late.

use ampl_agent::regions::Bystander;
use ampl_agent::thread::NamedRegion;
use ampl_agent::{CallEnd, Thread};
use ampl_core::mpi::ids;
use ampl_trace::decode::{Event, Events};
use ampl_trace::record::CALL_NO_ARGS;
use ampl_trace::regions::{Region, RegionEvent};

use crate::common::{Job, leave};

const NAMES: [&str; 4] = ["long", "short", "tiny one", "outer"];

fn region(number: usize) -> NamedRegion<'static> {
    NamedRegion { number: number as u32 + 1, name: NAMES[number], declared: None }
}

fn call(thread: &mut Thread, start: u64) {
    let (function, address, flags) = (ids::MPI_BARRIER, 0x40, CALL_NO_ARGS);
    thread.enter(function, address, start);
    let (sent, received, terminal, timed, apart) = (0, 0, None, true, false);
    let end = start + 3;
    leave(
        thread,
        CallEnd { function, address, start, end, sent, received, flags, terminal, timed, apart },
        &[],
    );
}

/// Steps of thread 0 in short: `+NAME`, `-NAME`, `call`, with the number of the next call and the time, `?` for unseen
/// ones.
fn steps(job: &Job) -> Vec<String> {
    let read = job.read();
    let line = |sign: &str, event: RegionEvent| {
        let name = match event.region {
            Region::Named(name) => name.to_string(),
            Region::Function(site) => format!("{:#x}", read.structure.sites[site as usize].offset),
        };
        let at = event.timed.map_or("-".into(), |moment| moment.at_ns.to_string());
        format!("{}{sign}{name} {} {at}", if event.unseen { "?" } else { "" }, event.seq)
    };
    let events = Events::new(&read.structure, &read.rank).map(|event| match event.expect("decodable") {
        Event::Call(call) => format!("call {}", call.seq),
        Event::Gap(gap) => format!("gap {} {}", gap.seq, gap.calls),
        Event::Enter(event) => line("+", event),
        Event::Exit(event) => line("-", event),
    });
    events.collect()
}

#[test]
fn regions_stand_between_calls_with_their_times() {
    let job = Job::new("[trace]\ntiming = \"all\"\ntime_error = 0\n", 1);
    let mut thread = job.thread(0);
    call(&mut thread, 10);
    thread.enter_region(region(3), 20);
    thread.enter_region(region(0), 30);
    call(&mut thread, 40);
    thread.exit_region(region(0), 50);
    thread.enter_region(region(0), 60);
    thread.exit_region(region(3), 70);
    // It has been left with the other.
    thread.exit_region(region(0), 80);
    call(&mut thread, 90);
    thread.finish(100);
    let expected = [
        "call 0",
        "+outer 1 20",
        "+long 1 30",
        "call 1",
        "-long 2 50",
        "+long 2 60",
        "-outer 2 70",
        "-long 2 80",
        "call 2",
    ];
    assert_eq!(steps(&job), expected);
    assert_eq!(job.read().rank.process.calls, [(ids::MPI_BARRIER.0, 3)], "regions are no calls");
}

#[test]
fn a_pause_hides_what_passes_in_it() {
    let job = Job::new("[trace]\ntiming = \"all\"\ntime_error = 0\n", 1);
    let mut thread = job.thread(0);
    thread.enter_region(region(3), 10);
    thread.control(0, 20);
    thread.exit_region(region(3), 30);
    thread.enter_region(region(0), 40);
    thread.enter_region(region(1), 50);
    thread.exit_region(region(1), 60);
    thread.control(1, 70);
    call(&mut thread, 80);
    thread.exit_region(region(0), 90);
    thread.control(0, 100);
    thread.enter_region(region(1), 110);
    call(&mut thread, 120);
    thread.control(1, 130);
    thread.exit_region(region(1), 140);
    thread.finish(150);
    let expected = [
        "+outer 0 10",
        "?-outer 0 -",
        "?+long 0 -",
        "call 0",
        "-long 1 90",
        "gap 1 1",
        "?+short 2 -",
        "-short 2 140",
    ];
    assert_eq!(steps(&job), expected);
}

#[test]
fn named_and_short_regions_are_left_out() {
    let job = Job::new("[trace]\nregions = \"!tiny*\"\nregion_floor = \"100ns\"\n", 1);
    let mut thread = job.thread(0);
    for visit in 0..10_100u64 {
        let at = 1000 * visit;
        thread.enter_region(region(3), at);
        for (number, length) in [(0, 200), (1, 100), (2, 200)] {
            thread.enter_region(region(number), at + 1);
            thread.exit_region(region(number), at + 1 + length);
        }
        thread.exit_region(region(3), at + 900);
    }
    call(&mut thread, 20_000_000);
    thread.finish(20_000_100);
    let steps = steps(&job);
    let number = |name: &str| steps.iter().filter(|step| step.starts_with(name)).count();
    for (name, visits) in [("outer", 10_100), ("long", 10_100), ("short", 10_000), ("tiny", 0)] {
        assert_eq!([number(&format!("+{name}")), number(&format!("-{name}"))], [visits; 2], "{name}");
    }
    thread.finish_structure();
    let left_out = job.read().rank.process.regions_left_out;
    assert_eq!(left_out.iter().map(|own| (&*own.region, own.visits)).collect::<Vec<_>>(), [("short", 100)]);
    assert!(job.read().structure.threads[0].grammar.size() < 60, "a loop");
}

#[test]
fn what_a_late_thread_is_in_goes_before_its_calls() {
    let job = Job::new("", 1);
    let mut first = job.thread(0);
    first.begin_inside(region(3), 5);
    first.begin_inside_function(0x700, 6);
    call(&mut first, 10);
    first.pass_function(ampl_trace::regions::Edge::Exit, 0x700, 15);
    first.pass_function(ampl_trace::regions::Edge::Exit, 0x900, 16);
    first.exit_region(region(3), 20);
    let mut before = Bystander::new(job.shared.clone());
    before.note_entry(0);
    before.note_entry(1);
    before.note_exit(1);
    assert_eq!((before.take_open(), before.take_open()), (vec![0], vec![]));
    // Another thread takes the place of one that has not left its region.
    first.enter_region(region(0), 30);
    first.end_regions();
    first.enter_region(region(1), 40);
    call(&mut first, 50);
    first.finish(60);
    let expected = [
        "?+outer 0 -",
        "?+0x700 0 -",
        "call 0",
        "-0x700 1 -",
        "-outer 1 -",
        "+long 1 -",
        "?-long 1 -",
        "+short 1 -",
        "call 1",
    ];
    let steps: Vec<String> = steps(&job).iter().map(|step| untimed(step)).collect();
    assert_eq!(steps, expected);
}

/// A step without its time.
fn untimed(step: &str) -> String {
    match step.rsplit_once(' ') {
        Some((step, _)) if !step.starts_with("call") && step.contains(' ') => format!("{step} -"),
        _ => step.to_owned(),
    }
}
