//! Steps that windows followed until others were announced.

use super::*;

/// A program whose windows follow its sums; and its calls.
fn following(timeout_s: u16) -> (Program, Vec<OwnCall>) {
    let mut program = Program::new(AUTO);
    (0..60).for_each(|_| program.step(&STEP, STEP_NS));
    let named = program.named().expect("named after 1.8 s").calls;
    let marker =
        StepMarker { call: named[3].call, visit: 70, window: WindowId(9), every: 1, per_step: 1, timeout_s };
    program.job.shared.announce_steps(marker, program.now);
    (0..40).for_each(|_| program.step(&STEP, STEP_NS));
    (program, named)
}

#[test]
fn steps_that_are_announced_and_never_begin_are_noted() {
    for (timeout_s, resumes) in [(40, false), (3, true)] {
        let (mut program, _) = following(10);
        let (window, at) = (program.job.shared.window(), program.now);
        assert_eq!(window, WindowId(9 + 30));
        let call = StepCall { function: START.0.0, path: 1 };
        let marker = StepMarker { call, visit: 5, window: WindowId(99), every: 1, per_step: 1, timeout_s };
        program.job.shared.announce_steps(marker, program.now);
        (0..400).for_each(|_| program.step(&STEP, STEP_NS));
        let (windows, followed) = program.end();
        let followed = followed.expect("it followed the sums");
        assert_eq!((&*followed.function, followed.left), ("MPI_Allreduce", Some(window.0)));
        let behind: Vec<(u64, u64)> = windows.into_iter().filter(|of| of.1 > at).collect();
        let again = (at / 3_000_000_000 + 2) * 3_000_000_000;
        assert_eq!(behind.first(), resumes.then_some(&(99, again)));
    }
}

#[test]
fn steps_have_time_to_come_from_their_announcement_on() {
    let (mut program, named) = following(60);
    // What is followed stops, so that a window is open for long.
    (0..500).for_each(|number| program.step(&[(ids::MPI_BARRIER, 0x1000 + number)], STEP_NS));
    let marker = StepMarker {
        call: named[0].call,
        visit: 110,
        window: WindowId(99),
        every: 1,
        per_step: 1,
        timeout_s: 3,
    };
    program.job.shared.announce_steps(marker, program.now);
    (0..40).for_each(|_| program.step(&STEP, STEP_NS));
    let (windows, followed) = program.end();
    let followed = followed.expect("it follows");
    assert_eq!((followed.first_visit, followed.first_window, followed.left), (110, 99, None));
    assert_eq!(windows.iter().filter(|of| of.0 >= 99).count(), 31);
}
