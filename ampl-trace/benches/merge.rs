//! Time to join the structures of many ranks in `MPI_Finalize`, milliseconds, and bytes of the trace.
//!
//! All ranks wait for rank 0: at each merge its partner packs its structure, and rank 0 reads and joins it.

use std::hint::black_box;
use std::time::Instant;

use ampl_trace::grammar::Builder;
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CALLS: u32 = 20_000;
/// Builds of the whole of which the fastest counts.
const REPETITIONS: usize = 5;

/// A rank that calls with tags drawn by `tag`.
fn rank(number: u32, mut tag: impl FnMut(u32) -> u64) -> RankStructure {
    let mut tags: Vec<u64> = Vec::new();
    let mut builder = Builder::new();
    for call in 0..CALLS {
        let tag = tag(call);
        let terminal = tags.iter().position(|&known| known == tag).unwrap_or_else(|| {
            tags.push(tag);
            tags.len() - 1
        });
        builder.push(terminal as u32, 1);
    }
    let signature = |&tag: &u64| Signature { words: vec![tag], ..Signature::default() };
    let signatures = tags.iter().map(signature).collect();
    let thread = ThreadStructure { thread: 0, signatures, grammar: builder.into_grammar().shorter() };
    RankStructure { rank: number, threads: vec![thread], ..RankStructure::default() }
}

fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds of one rank's own structure, of rank 0's way and of the trace's section, and its bytes.
fn merge(ranks: &[RankStructure]) -> ([f64; 3], usize) {
    let (mut own, mut way) = (0.0f64, 0.0);
    let mut parts: Vec<JobStructure> = Vec::new();
    for rank in ranks.iter().cloned() {
        let start = Instant::now();
        parts.push(JobStructure::of(rank));
        own = own.max(since(start));
    }
    while parts.len() > 1 {
        let mut joined = Vec::new();
        let mut pairs = parts.into_iter();
        while let Some(mut first) = pairs.next() {
            if let Some(second) = pairs.next() {
                let start = Instant::now();
                let bytes = black_box(second.encode_fast());
                first.join(JobStructure::decode(&bytes).expect("what was packed"));
                way += if joined.is_empty() { since(start) } else { 0.0 };
            }
            joined.push(first);
        }
        parts = joined;
    }
    let start = Instant::now();
    let bytes = black_box(parts[0].encode());
    ([own, way, since(start)], bytes.len())
}

fn main() {
    let mut numbers = ChaCha8Rng::seed_from_u64(1);
    let stencil = |number: u32| rank(number, |call| u64::from(call % 9));
    let thousand = |number: u32| rank(number, |call| u64::from(call % 1000));
    let mut random = |number: u32| rank(number, |_| numbers.random_range(0..100));
    let table: [(&str, Vec<RankStructure>); 5] = [
        ("64 ranks, loop of 9", (0..64).map(stencil).collect()),
        ("64 ranks, loop of 1000", (0..64).map(thousand).collect()),
        ("40 ranks, 100 random tags", (0..40).map(&mut random).collect()),
        ("8 ranks, 100 random tags", (0..8).map(&mut random).collect()),
        ("64 ranks, 100 random tags", (0..64).map(&mut random).collect()),
    ];
    println!("{:<26} {:>8} {:>8} {:>8} {:>9}", "", "own, ms", "way, ms", "end, ms", "bytes");
    for (name, ranks) in table {
        let (mut fastest, mut size) = ([f64::INFINITY; 3], 0);
        for _ in 0..REPETITIONS {
            let (times, bytes) = merge(&ranks);
            fastest.iter_mut().zip(times).for_each(|(least, time)| *least = least.min(time));
            size = bytes;
        }
        let [own, way, end] = fastest;
        println!("{name:<26} {own:>8.2} {way:>8.1} {end:>8.1} {size:>9}");
    }
}
