//! Events from the program itself: regions, metrics, markers, pauses. No MPI, and a clock that ticks once a
//! nanosecond.

use ampl_agent::regions::Bystander;
use ampl_agent::{CallEnd, Thread};
use ampl_core::config::Mechanism;
use ampl_core::message::{Directive, StratumDirective};
use ampl_core::mpi::{Function, ids};
use ampl_core::units::WindowId;
use ampl_trace::cells::Cell;
use ampl_trace::decode::Calls;
use ampl_trace::model::{Level, WindowSummary};

use crate::common::{Job, leave};

fn region(job: &Job, name: &str) -> u16 {
    job.shared.declared().region(name).expect("a region of the configuration")
}

/// The cell of that metric and event in every window, after the thread has finished.
fn cells(job: &Job, metric: &str, event: &str) -> Vec<Cell> {
    let metrics = &job.shared.plan.metrics;
    let of = metrics.iter().position(|have| have.name() == metric && have.event.name() == event);
    let slot = of.unwrap_or_else(|| panic!("{metric} of {event} is in no summary"));
    job.read().rank.windows.entries().iter().map(|window| window.cells.get(slot).unwrap()).collect()
}

/// A call of `MPI_Send` from `start` to `end` with that many bytes.
fn send(thread: &mut Thread, start: u64, end: u64, sent: u64) {
    call(thread, ids::MPI_SEND, start, end, sent);
}

fn call(thread: &mut Thread, function: Function, start: u64, end: u64, sent: u64) {
    thread.enter(function, 0x40, start);
    let words = [0x1000, 1, 1, 0, 7, 1];
    let words: &[u64] = if function == ids::MPI_SEND { &words } else { &[] };
    let flags = if words.is_empty() { ampl_trace::record::CALL_NO_ARGS } else { 0 };
    let (address, received, terminal, timed) = (0x40, 0, None, true);
    leave(
        thread,
        CallEnd { function, address, start, end, sent, received, flags, terminal, timed, apart: false },
        words,
    );
}

fn n_sum(cells: &[Cell]) -> Vec<(f64, f64)> {
    cells.iter().map(|cell| (cell.n, cell.sum)).collect()
}

const METRICS: &str = r#"
[[metric]]
name = "wall"
event = "region:B"
[[metric]]
name = "mpi.time"
event = "region:B"
[[metric]]
name = "compute.time"
event = "region:B"
[[metric]]
name = "bytes.sent"
event = "region:B"
[[metric]]
name = "calls"
event = "region:B"
[[metric]]
name = "calls"
event = "path:A>B"
[[metric]]
name = "work"
event = "region:B"
role = "report"
[[metric]]
name = "work"
role = "report"
"#;

#[test]
fn windows_end_where_the_region_does() {
    let job = Job::new("[window]\nmarker = \"region:STEP\"\n", 1);
    let mut thread = job.thread(0);
    let step = region(&job, "STEP");
    for start in [100, 200, 300] {
        assert!(!thread.region_enter(step, start));
        send(&mut thread, start + 10, start + 20, 8);
        assert_eq!(thread.region_exit(step, start + 50), (true, true));
    }
    send(&mut thread, 400, 410, 8);
    thread.finish(500);
    let windows = job.read().rank.windows.entries().to_vec();
    let ends: Vec<i64> = windows.iter().map(|window| window.end_ns - windows[0].start_ns).collect();
    assert_eq!(ends, [150, 250, 350, 500]);
    assert_eq!(windows.iter().map(|window| window.partial).collect::<Vec<_>>(), [false, false, false, true]);
    assert_eq!(job.shared.irregularities(), Vec::<String>::new());
}

#[test]
fn every_third_exit_and_recursion_counts_once() {
    let job = Job::new("[window]\nmarker = \"region:STEP\"\nevery = 3\n", 1);
    let mut thread = job.thread(0);
    let step = region(&job, "STEP");
    let mut closed = Vec::new();
    for round in 1..=7 {
        let at = round * 100;
        // Three deep: one visit.
        for deeper in 0..3 {
            thread.region_enter(step, at + deeper);
        }
        assert_eq!(thread.region_exit(step, at + 10), (false, true));
        assert_eq!(thread.region_exit(step, at + 11), (false, true));
        if thread.region_exit(step, at + 12).0 {
            closed.push(round);
        }
    }
    assert_eq!(closed, [3, 6]);
}

#[test]
fn a_visit_is_what_happens_in_it() {
    let job = Job::new(&format!("[window]\nmarker = \"region:A\"\n{METRICS}"), 1);
    let (a, b, work) = (region(&job, "A"), region(&job, "B"), job.shared.declared().user("work").unwrap());
    let mut thread = job.thread(0);
    // Outside of A: a visit of B, but not of A>B.
    thread.region_enter(b, 100);
    send(&mut thread, 110, 130, 5);
    thread.metric_add(work, 2.5, 140);
    thread.region_exit(b, 150);
    thread.metric_add(work, 1.0, 155);
    thread.region_enter(a, 160);
    // Inside, and again within itself: one visit of each.
    thread.region_enter(b, 200);
    thread.region_enter(b, 210);
    send(&mut thread, 220, 230, 7);
    thread.region_exit(b, 240);
    send(&mut thread, 250, 255, 1);
    thread.region_exit(b, 260);
    send(&mut thread, 270, 290, 100);
    assert_eq!(thread.region_exit(a, 300), (true, true));
    // A visit belongs to the window where it ends, with all that happened in it.
    thread.region_enter(a, 310);
    thread.region_enter(b, 320);
    send(&mut thread, 330, 331, 9);
    thread.region_exit(a, 340);
    thread.finish(400);

    assert_eq!(n_sum(&cells(&job, "wall", "region:B")), [(2.0, 50.0 + 60.0), (1.0, 20.0), (0.0, 0.0)]);
    assert_eq!(n_sum(&cells(&job, "mpi.time", "region:B")), [(2.0, 20.0 + 15.0), (1.0, 1.0), (0.0, 0.0)]);
    assert_eq!(
        n_sum(&cells(&job, "compute.time", "region:B")),
        [(2.0, 30.0 + 45.0), (1.0, 19.0), (0.0, 0.0)]
    );
    assert_eq!(n_sum(&cells(&job, "bytes.sent", "region:B")), [(2.0, 13.0), (1.0, 9.0), (0.0, 0.0)]);
    assert_eq!(n_sum(&cells(&job, "calls", "region:B")), [(2.0, 3.0), (1.0, 1.0), (0.0, 0.0)]);
    assert_eq!(n_sum(&cells(&job, "calls", "path:A>B")), [(1.0, 2.0), (1.0, 1.0), (0.0, 0.0)]);
    assert_eq!(n_sum(&cells(&job, "work", "region:B")), [(2.0, 2.5), (1.0, 0.0), (0.0, 0.0)]);
    // Over whole windows: one observation each, 0 where nothing was added.
    assert_eq!(n_sum(&cells(&job, "work", "*")), [(1.0, 3.5), (1.0, 0.0), (1.0, 0.0)]);
    let said = job.shared.irregularities();
    assert!(said.len() == 1 && said[0].contains("1 times"), "B was not left the last time: {said:?}");
}

#[test]
fn what_is_not_balanced_ends_with_what_is_around_it() {
    let job = Job::new(&format!("[window]\nmarker = \"region:A\"\n{METRICS}"), 1);
    let (a, b) = (region(&job, "A"), region(&job, "B"));
    let mut thread = job.thread(0);
    assert_eq!(thread.region_exit(b, 10), (false, false), "never entered");
    thread.region_enter(a, 20);
    for at in 30..2000 {
        thread.region_enter(b, at);
    }
    assert_eq!(thread.region_exit(a, 3000), (true, true));
    assert_eq!(thread.region_exit(b, 3010), (false, false), "ended with A");
    // Two that are never left, in turns: the stack must not grow for ever.
    for at in 4000..40_000 {
        thread.region_enter(if at % 2 == 0 { a } else { b }, at);
    }
    thread.finish(50_000);
    assert_eq!(n_sum(&cells(&job, "wall", "region:B")), [(1.0, 2970.0), (0.0, 0.0)]);
}

#[test]
fn windows_that_the_clock_ends_split_no_visit() {
    let job = Job::new(&format!("[window]\nmarker = \"period:1us\"\n{METRICS}"), 1);
    let b = region(&job, "B");
    let mut thread = job.thread(0);
    let first = job.shared.window();
    thread.region_enter(b, 100);
    send(&mut thread, 200, 3_300, 4);
    thread.region_exit(b, 3_400);
    thread.finish(3_500);
    assert_eq!(first.0, 0);
    let cells = cells(&job, "mpi.time", "region:B");
    assert_eq!(n_sum(&cells), [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (1.0, 3100.0)]);
}

#[test]
fn a_pause_is_in_no_total_but_in_the_sequence() {
    let config = format!("[window]\nmarker = \"pcontrol\"\n[trace]\ntiming = \"all\"\n{METRICS}");
    let job = Job::new(&config, 1);
    let (b, work) = (region(&job, "B"), job.shared.declared().user("work").unwrap());
    let mut thread = job.thread(0);
    send(&mut thread, 10, 20, 1);
    thread.region_enter(b, 30);
    assert!(job.shared.is_traced());
    assert!(!thread.control(0, 100));
    assert!(!job.shared.is_traced());
    for at in [200, 300, 400] {
        send(&mut thread, at, at + 50, 1000);
    }
    thread.metric_add(work, 100.0, 460);
    assert!(!thread.control(1, 500));
    send(&mut thread, 510, 520, 2);
    thread.region_exit(b, 530);
    assert!(thread.control(7, 600), "a marker");
    // A window may end in a pause: the others' do.
    thread.control(0, 700);
    assert!(thread.control(2, 800));
    thread.control(1, 850);
    send(&mut thread, 900, 910, 4);
    thread.finish(1000);

    assert_eq!(n_sum(&cells(&job, "wall", "*")), [(1.0, 200.0), (1.0, 100.0), (1.0, 150.0)]);
    assert_eq!(n_sum(&cells(&job, "bytes.sent", "*")), [(1.0, 3.0), (1.0, 0.0), (1.0, 4.0)]);
    assert_eq!(n_sum(&cells(&job, "work", "*"))[0], (1.0, 0.0));
    assert_eq!(n_sum(&cells(&job, "wall", "region:B"))[0], (1.0, 100.0));
    let read = job.read();
    let sequence: Vec<(u64, Option<u64>)> = Calls::new(&read.structure, &read.rank)
        .map(|call| call.expect("decodable"))
        .map(|call| (call.seq, call.timed.map(|timed| timed.window)))
        .collect();
    assert_eq!(sequence, [(0, Some(0)), (4, Some(0)), (5, Some(2))]);
    assert_eq!(read.rank.process.calls, [(ids::MPI_SEND.0, 6)]);
}

/// Windows that end during a pause are closed at once where they are many, and share the time outside of the pause.
#[test]
fn a_pause_is_in_no_total_of_many_windows() {
    let job = Job::new("[window]\nmarker = \"period:100ns\"\n", 1);
    let mut thread = job.thread(0);
    send(&mut thread, 10, 20, 1);
    thread.control(0, 50);
    send(&mut thread, 20_010, 20_020, 1);
    thread.control(1, 20_050);
    // No calls for as long again, without a pause; then a pause that begins in windows that are not closed yet.
    thread.control(0, 40_050);
    thread.control(1, 60_050);
    send(&mut thread, 60_060, 60_070, 1);
    thread.finish(60_100);

    let windows = job.read().rank.windows.entries().to_vec();
    let slot =
        job.shared.plan.metrics.iter().position(|have| have.name() == "wall" && have.event.name() == "*");
    let slot = slot.expect("wall of everything");
    let measured = |window: &WindowSummary| window.repeat.max(1) as f64 * window.cells.get(slot).unwrap().sum;
    let until = |at: i64| windows.iter().filter(|window| window.end_ns <= at).map(measured).sum::<f64>();
    // Windows paused throughout have no observation, not zeros.
    let whole = windows.iter().filter(|window| window.start_ns >= 100 && window.end_ns <= 20_000);
    assert!(
        whole.clone().count() > 0 && whole.clone().all(|window| window.cells.get(slot).unwrap().n == 0.0)
    );
    // Windows are put together in whole nanoseconds each.
    let near = |is: f64, should: f64| (is - should).abs() <= 201.0;
    assert!(windows.len() < 50, "{} windows were closed one by one", windows.len());
    assert!(near(until(20_000), 50.0), "{}", until(20_000));
    assert!(near(until(40_000), 20_000.0), "{}", until(40_000));
    assert!(near(until(60_100), 20_100.0), "{}", until(60_100));
}

/// A process that only counts calls is not to write of every window, where they are many a second, nor to take a lock
/// for each: of one ended by every `every`th of the calls that two threads make in turn, the second a directive's.
fn passes_windows(every: u64) {
    const MARKERS: u64 = 50_000;
    let config = format!(
        "[window]\nmarker = \"mpi:MPI_Barrier\"\nevery = {every}\nmax = 100000\n[agent]\nmax_overhead = \"0.5%\"\nmax_structure_overhead = \"0.5%\"\n"
    );
    let job = Job::new(&config, 1);
    let mut threads = [job.thread(0), job.thread(1)];
    let (mut at, mut met) = (0, 0);
    // It takes half of the time until calls are only counted.
    while !threads[0].is_off() {
        at += 100_000;
        met += 1;
        call(&mut threads[0], ids::MPI_BARRIER, at, at + 10, 0);
        threads[0].add_own(50_000);
        threads[0].check_overhead(at);
    }
    let told = || std::iter::from_fn(|| job.shared.take_closed()).collect::<Vec<_>>();
    assert_eq!(told().len() as u64, (met / every).min(512), "one by one, as many as wait for the tree");
    call(&mut threads[1], ids::MPI_SEND, at + 20, at + 30, 0);

    let (mut locked, mut directed) = (0, 0);
    for marker in 0..MARKERS {
        at += 100_000;
        met += 1;
        let thread = &mut threads[marker as usize % 2];
        thread.pass(ids::MPI_BARRIER, 0x40);
        if !thread.pass_marker(at) {
            locked += 1;
            thread.end_windows(ids::MPI_BARRIER, 0x40, at);
        }
        if marker == MARKERS / 2 {
            assert_eq!(job.shared.window_now().0, met / every);
            directed = met / every + 7;
            job.shared.direct(Directive {
                update: 1,
                first_window: WindowId(directed),
                seed: 1,
                mechanism: Mechanism::Global,
                strata: vec![StratumDirective { group: 0, stratum: 0, size: 8, probability: 0.5, policy: 1 }],
                divided: Vec::new(),
            });
        }
    }
    let together = told();
    threads[0].finish(at + 100);
    // Reports come within 100 ms, none is missing or there twice.
    let times = MARKERS / 1000;
    assert!((times * 9 / 10..=times * 11 / 10 + 1).contains(&(together.len() as u64)), "{}", together.len());
    assert!(together[1..].iter().all(|windows| !windows.measured));
    assert!(together.windows(2).all(|pair| pair[0].last.next() == pair[1].window));
    // The lock is taken once 100 ms are over, until the window ends; and once more by each thread.
    assert!(locked <= (4 + every) * times, "{locked} times");
    let read = job.read();
    let mut next = 0;
    for window in read.rank.windows.entries() {
        assert_eq!(window.window, next);
        assert_eq!(window.update, u64::from(next >= directed));
        let first = next;
        next += window.repeat.max(1);
        assert!(first >= directed || next <= directed, "{first} to {next} are not drawn by one directive");
    }
    assert_eq!(next, met / every + 1);
    let called = |function: Function| read.rank.process.calls.iter().find(|calls| calls.0 == function.0);
    assert_eq!(called(ids::MPI_BARRIER), Some(&(ids::MPI_BARRIER.0, met)));
}

#[test]
fn windows_of_which_nothing_is_known_are_told_together() {
    passes_windows(1);
}

#[test]
fn windows_of_several_markers_are_told_together_too() {
    passes_windows(7);
}

#[test]
fn threads_without_mpi_have_visits_too() {
    let job = Job::new(&format!("[window]\nmarker = \"region:A\"\n{METRICS}"), 1);
    let (a, b, work) = (region(&job, "A"), region(&job, "B"), job.shared.declared().user("work").unwrap());
    let mut thread = job.thread(0);
    let mut other = Bystander::new(job.shared.clone());
    other.enter(b, 50);
    other.add(work, 4.0);
    assert!(other.exit(b, 80));
    thread.region_enter(a, 90);
    thread.metric_add(work, 1.0, 95);
    // The other thread's totals are added at its next call, or when it hands over.
    thread.region_exit(a, 100);
    other.add(work, 8.0);
    other.enter(a, 110);
    assert!(other.exit(a, 120), "no window ends there");
    other.enter(b, 130);
    other.add(work, 16.0);
    // It makes its first call of MPI, within its region.
    let mut late = Thread::new(job.shared.clone(), 1, 140).expect("room");
    late.take_over(&mut other);
    send(&mut late, 150, 160, 3);
    assert_eq!(late.region_exit(b, 180), (false, true));
    late.hand_over();
    thread.finish(200);

    assert_eq!(n_sum(&cells(&job, "work", "*")), [(1.0, 1.0), (1.0, 28.0)]);
    assert_eq!(n_sum(&cells(&job, "wall", "region:B")), [(0.0, 0.0), (2.0, 30.0 + 50.0)]);
    assert_eq!(n_sum(&cells(&job, "bytes.sent", "region:B"))[1], (2.0, 3.0));
    assert_eq!(n_sum(&cells(&job, "work", "region:B"))[1], (2.0, 4.0 + 16.0));
    let said = job.shared.irregularities();
    assert!(said.len() == 1 && said[0].contains("no MPI calls"), "{said:?}");
}

#[test]
fn what_others_leave_is_of_the_same_window_where_windows_gather() {
    let works = [0, 8].map(|most| {
        let job = Job::new("[window]\nmarker = \"mpi:MPI_Barrier\"\n[[metric]]\nname = \"work\"\n", 64);
        let work = job.shared.declared().user("work").unwrap();
        let mut thread = job.thread(0);
        thread.gather_up_to(most);
        let mut other = Bystander::new(job.shared.clone());
        let mut late = Vec::new();
        for window in 0..12 {
            let now = 1000 * window;
            thread.metric_add(work, 1.0, now + 10);
            other.add(work, 100.0 * (window + 1) as f64);
            if window == 4 {
                late.push(Thread::new(job.shared.clone(), 1, now + 20).expect("room"));
            }
            late.iter_mut().for_each(|late| {
                late.metric_add(work, 0.5, now + 30);
            });
            if window == 7 {
                late.drain(..).for_each(|mut late| late.hand_over());
            }
            assert_eq!(job.shared.window_now(), WindowId(window));
            call(&mut thread, ids::MPI_BARRIER, now + 900, now + 901, 0);
        }
        other.hand_over();
        thread.finish(13_000);
        n_sum(&cells(&job, "work", "*"))
    });
    assert_eq!(works[0], works[1]);
    assert_eq!(works[0].iter().map(|&(_, sum)| sum).sum::<f64>(), 12.0 + 100.0 * 78.0 + 2.0);
}

#[test]
fn a_marker_that_never_comes_is_said() {
    let job = Job::new("[window]\nmarker = \"region:STEP\"\n", 1);
    let mut thread = job.thread(0);
    thread.region_enter(region(&job, "STEP"), 10);
    thread.finish(500);
    let said = job.shared.irregularities();
    assert!(said[0].contains("region:STEP") && said[0].contains("not met"), "{said:?}");
    for (marker, met) in [("pcontrol", true), ("mpi:MPI_Barrier", false), ("mpi:MPI_Send", true)] {
        let job = Job::new(&format!("[window]\nmarker = \"{marker}\"\n"), 1);
        let mut thread = job.thread(0);
        send(&mut thread, 10, 20, 1);
        if marker == "pcontrol" {
            thread.control(5, 30);
        }
        thread.finish(500);
        let said = job.shared.irregularities();
        assert_eq!(said.is_empty(), met, "{said:?}");
        assert!(met || (said[0].contains(marker) && said[0].contains("name one that it meets")), "{said:?}");
    }
}

#[test]
fn a_region_that_nobody_has_heard_of_gives_way_to_the_clock() {
    const SECOND: u64 = 1_000_000_000;
    let config = "[window]\nmarker = \"region:STEP\"\n";
    let ends = |job: &Job| -> Vec<f64> {
        let windows = job.read().rank.windows.entries().to_vec();
        windows.iter().map(|window| (window.end_ns - windows[0].start_ns) as f64 / SECOND as f64).collect()
    };
    let job = Job::new(config, 1);
    let mut thread = job.thread(0);
    send(&mut thread, 9 * SECOND, 9 * SECOND + 10, 1);
    assert_eq!(job.shared.window().0, 0);
    send(&mut thread, 10 * SECOND + 600_000_000, 10 * SECOND + 600_000_010, 1);
    // Too late: ranks that waited and ranks that did not would number their windows differently.
    let step = region(&job, "STEP");
    thread.region_enter(step, 10 * SECOND + 610_000_000);
    assert_eq!(thread.region_exit(step, 10 * SECOND + 620_000_000), (false, true));
    thread.finish(11 * SECOND);
    assert_eq!(ends(&job), [10.0, 10.25, 10.5, 10.75, 11.0, 11.0]);
    assert!(job.shared.irregularities()[0].contains("within 10 s"), "{:?}", job.shared.irregularities());
    let steps = job.read().rank.process.steps;
    let said: Vec<_> = steps.iter().map(|step| (step.window, step.level)).collect();
    assert_eq!(said, [(1, Level::Clock)]);

    let job = Job::new(config, 1);
    let mut thread = job.thread(0);
    job.shared.know_region("STEP");
    let step = region(&job, "STEP");
    for second in [15, 25] {
        send(&mut thread, second * SECOND, second * SECOND + 10, 1);
        thread.region_enter(step, second * SECOND + 100);
        assert_eq!(thread.region_exit(step, (second + 1) * SECOND), (true, true));
    }
    thread.finish(40 * SECOND);
    assert_eq!(ends(&job), [16.0, 26.0, 40.0]);
    assert_eq!(job.read().rank.process.steps, []);
    assert_eq!(job.shared.irregularities(), Vec::<String>::new());
}
