//! Every check holds for the inputs in `fuzz/corpus/`, and for changes of them.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use ampl_fuzzed::{Check, TARGETS};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Changed inputs of each target.
const CHANGES: usize = 2000;
/// Time for changed inputs of each target where the tests may take long.
const LONG: Duration = Duration::from_secs(30);
/// Bytes of an input, at most.
const MOST_BYTES: usize = 1 << 13;
/// Numbers at which code decides.
const LIMITS: [u64; 8] = [0, 1, 0x7f, 0x80, 0xff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];

/// Inputs of a target, by their names.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&place).expect("inputs").map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Checks `bytes`; writes them to a file first where the check fails.
fn checked(target: &str, check: Check, bytes: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(bytes))) {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}.input"));
        fs::write(&place, bytes).unwrap();
        eprintln!("the input is in {}", place.display());
        std::panic::resume_unwind(panic);
    }
}

/// One of `kept` with some bytes changed, left out, repeated or taken from another.
fn changed(kept: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = kept[random.random_range(0..kept.len())].clone();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=bytes.len());
        let end = bytes.len().min(at + random.random_range(0..64));
        match random.random_range(0..7) {
            0 if at < end => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < end => bytes[at] = random.random(),
            2 => {
                let limit = LIMITS[random.random_range(0..LIMITS.len())].to_le_bytes();
                let width = 1 << random.random_range(0..4);
                bytes.iter_mut().skip(at).zip(&limit[..width]).for_each(|(byte, &limit)| *byte = limit);
            }
            3 => bytes.truncate(at),
            4 => _ = bytes.drain(at..end),
            5 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let other = &kept[random.random_range(0..kept.len())];
                let from = random.random_range(0..=other.len());
                let until = other.len().min(from + random.random_range(0..256));
                bytes.splice(at..end, other[from..until].iter().copied());
            }
        }
        bytes.truncate(MOST_BYTES);
    }
    bytes
}

fn holds(target: &str) {
    let (_, check) = *TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    let kept = kept(target);
    assert!(!kept.is_empty(), "fuzz/corpus/{target} has no inputs");
    kept.iter().for_each(|bytes| checked(target, check, bytes));
    let is_long = std::env::var("AMPL_TEST_EXTENT").is_ok_and(|extent| extent == "all");
    let (begin, mut random) = (Instant::now(), ChaCha8Rng::seed_from_u64(kept.len() as u64));
    let mut changes = 0;
    while changes < CHANGES || is_long && begin.elapsed() < LONG {
        checked(target, check, &changed(&kept, &mut random));
        changes += 1;
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test] fn $name() { holds(stringify!($name)); })*

        #[test]
        fn every_target_is_tested() {
            assert_eq!([$(stringify!($name)),*], TARGETS.map(|(name, _)| name));
        }
    };
}

targets! { config edges journal message node pattern population record rules time_index timing trace }
