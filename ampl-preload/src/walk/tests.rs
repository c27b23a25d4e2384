//! Walks of stacks made here, compared with the standard library's unwinder.

use std::arch::asm;
use std::ffi::c_void;
use std::hint::black_box;

use ampl_agent::paths::Folding;

use super::*;

/// Return addresses on the stack, innermost first, as the unwinder of the standard library sees them.
fn unwound() -> Vec<u64> {
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32,
            argument: *mut c_void,
        ) -> i32;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
    }
    unsafe extern "C" fn step(context: *mut c_void, all: *mut c_void) -> i32 {
        // SAFETY: the unwinder's own context, and the vector below.
        unsafe { (*all.cast::<Vec<u64>>()).push(_Unwind_GetIP(context) as u64) };
        0
    }
    let mut all: Vec<u64> = Vec::new();
    // SAFETY: walks the calling thread's stack, and calls `step` with the vector.
    unsafe { _Unwind_Backtrace(step, (&raw mut all).cast()) };
    all
}

/// As if the function it stands in had called a wrapper here.
macro_rules! origin {
    () => {{
        let (address, stack, bp): (u64, u64, u64);
        // SAFETY: reads registers.
        unsafe {
            asm!("lea {0}, [rip]", "mov {1}, rsp", "mov {2}, rbp", out(reg) address, out(reg) stack, out(reg) bp);
        }
        Origin { address, stack: stack - 8, bp }
    }};
}

/// The path of a call made here, and the one expected.
#[inline(never)]
fn look(walker: &mut Walker, most: usize) -> (Vec<u64>, Vec<u64>) {
    let here = origin!();
    let all = unwound();
    let at = memo(here);
    let found = match walker.recall(at, here) {
        Some(_) => Vec::new(),
        None => {
            walker.follow(here);
            walker.remember(at, here, 7);
            walker.track.path.frames().to_vec()
        }
    };
    let mut expected = Folding::new(most);
    let own = frames::code(here.address).map(|code| code.function);
    let from = all.iter().position(|&address| frames::code(address).map(|code| code.function) == own);
    expected.push(own.unwrap(), here.address);
    // Where the stack begins it tells of a frame that is none.
    let outer =
        all[from.expect("this function is on the stack") + 1..].iter().filter(|&&address| address != 0);
    for &address in outer {
        expected.push(frames::code(address).map_or(address, |code| code.function), address);
    }
    (found, expected.frames().to_vec())
}

#[inline(never)]
fn one(left: u32, walker: &mut Walker, most: usize) -> bool {
    let room = [left; 8];
    black_box(&room);
    let same = match left {
        0 => {
            let (found, expected) = look(walker, most);
            found == expected || panic!("{found:x?} is not {expected:x?}")
        }
        _ if left.is_multiple_of(3) => other(left - 1, walker, most),
        _ => one(left - 1, walker, most),
    };
    black_box(same)
}

#[inline(never)]
fn other(left: u32, walker: &mut Walker, most: usize) -> bool {
    black_box(one(left, walker, most) && black_box(left) < u32::MAX)
}

#[test]
fn paths_are_those_that_the_unwinder_finds() {
    for most in [2, 3, 8, 64] {
        let mut walker = Walker::new(most).unwrap();
        // Deeper and deeper, back, and to the same depth by another way.
        for depth in [0, 1, 2, 7, 40, 300, 299, 301, 3000, 2990, 2000, 41, 3, 0] {
            assert!(one(depth, &mut walker, most));
            assert!(other(depth, &mut walker, most));
            walker.memos.fill(Memo::default());
            assert!(one(depth, &mut walker, most), "with what is remembered of deep stacks");
            walker.memos.fill(Memo::default());
        }
        assert!(most < 4 || walker.marks.iter().flatten().count() > 1, "{most}");
    }
    assert!(Walker::new(1).is_none());
}

#[test]
fn a_call_from_the_same_place_is_recognised() {
    #[inline(never)]
    fn call(walker: &mut Walker) -> (Option<u64>, u64) {
        let origin = origin!();
        let at = memo(origin);
        let recalled = walker.recall(at, origin);
        walker.follow(origin);
        let outer = walker.track.path.frames()[1];
        walker.remember(at, origin, outer);
        black_box((recalled, outer))
    }
    let mut walker = Walker::new(8).unwrap();
    let mut outer = Vec::new();
    for turn in 0..3 {
        let (recalled, here) = call(&mut walker);
        assert_eq!(recalled, (turn > 0).then_some(here));
        outer.push(here);
    }
    // From elsewhere in the same frame the word on the stack differs.
    let (recalled, elsewhere) = call(&mut walker);
    assert_eq!((recalled, outer.contains(&elsewhere)), (None, false));
}

#[test]
fn ways_to_a_place_are_numbered_as_they_come() {
    #[inline(never)]
    fn around(walker: &mut Walker) -> (Option<u8>, usize) {
        let here = origin!();
        let known = walker.known_way(here);
        walker.follow(here);
        let callers = walker.track.path.frames()[1..].to_vec();
        let (way, _) = number(walker.ways.entry(here.address).or_default(), &callers);
        walker.remember(memo(here), here, way.into());
        (black_box(known), way.into())
    }
    let mut walker = Walker::of_ways().unwrap();
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(around(&mut walker));
        found.push(around(&mut walker));
    }
    let expected = [(None, 0), (None, 1), (Some(0), 0), (Some(1), 1), (Some(0), 0), (Some(1), 1)];
    assert_eq!(found, expected);
    // Those beyond all numbers share the last one.
    let mut known = Vec::new();
    for (at, own) in (0..600u64).map(|way| [way]).enumerate() {
        let (way, is_new) = number(&mut known, &own);
        assert_eq!((usize::from(way), is_new), (at.min(255), at < 255));
    }
    assert_eq!(number(&mut known, &[7]), (7, false));
}

#[test]
fn nothing_is_read_outside_of_the_stack() {
    let mut walker = Walker::new(8).unwrap();
    let here = origin!();
    for stack in [0, 8, u64::MAX - 7, walker.bounds.end, walker.bounds.start.wrapping_sub(16)] {
        walker.follow(Origin { stack, ..here });
        assert_eq!(walker.track.path.frames(), [here.address], "{stack:#x}");
        assert!(walker.reads.words.is_empty());
    }
    // Garbage on the stack, and in rbp.
    for stack in (walker.bounds.end - 4096..walker.bounds.end).step_by(8) {
        walker.follow(Origin { stack, bp: stack ^ 0xff0, ..here });
    }
}
