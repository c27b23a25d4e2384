//! Sizes and speeds of coded times, beside the adaptive code length of the bins and the sizes that are aimed
//! at.
#![allow(clippy::disallowed_methods, reason = "a bench looks at the clock")]

mod code_length;

use std::time::Instant;

use ampl_trace::timing::{Decoder, Encoder, Settings, Terminal, Time, Window};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use code_length::CodeLength;

/// A call as it is recorded: terminal, start, duration.
type Call = (u32, i64, u64);

fn main() {
    stencils();
    sources();
}

/// A 2-D stencil: 16 ranks of 1000 iterations of 4 receives, 4 sends and a wait.
fn stencils() {
    println!("stencil, 16 ranks x 1000 iterations x 9 calls");
    for (error, floor_ns) in [(0.1, 10_000), (0.1, 0), (0.05, 0), (0.01, 0), (0.0, 0)] {
        let ranks: Vec<Vec<Call>> = (0..16).map(|rank| stencil(rank, 1000)).collect();
        let target = if floor_ns > 0 { ", at most 71460 wanted" } else { "" };
        report(&format!("error {error} floor {floor_ns}{target}"), Settings { error, floor_ns }, &ranks);
    }
}

/// Reports times of one rank from each source, which show how well models learn.
fn sources() {
    for calls in [100, 1000, 10_000, 1_000_000] {
        println!("{calls} calls of 10 signatures, error 0.1, floor 0");
        for (name, source) in SOURCES {
            let mut random = ChaCha8Rng::seed_from_u64(7);
            let mut now = 0;
            let times = (0..calls).map(|call| {
                let [gap, duration] = source(&mut random, call, calls);
                let start = now + gap as i64;
                now = start + duration as i64;
                ((call % 10) as u32, start, duration as u64)
            });
            report(name, Settings { error: 0.1, floor_ns: 0 }, &[times.collect()]);
        }
    }
}

type Source = fn(&mut ChaCha8Rng, usize, usize) -> [f64; 2];

const SOURCES: [(&str, Source); 6] = [
    ("log-normal, sigma 0.5", |random, call, _| {
        let scale = 300.0 * (1 + call % 10) as f64;
        [log_normal(random, scale, 0.5), log_normal(random, 3.0 * scale, 0.5)]
    }),
    ("log-normal, sigma 0.1", |random, call, _| {
        let scale = 300.0 * (1 + call % 10) as f64;
        [log_normal(random, scale, 0.1), log_normal(random, 3.0 * scale, 0.1)]
    }),
    ("two modes", |random, call, _| {
        let scale = 300.0 * (1 + call % 10) as f64;
        let slow = if random.random_bool(0.1) { 50.0 } else { 1.0 };
        [log_normal(random, scale, 0.2), slow * log_normal(random, 3.0 * scale, 0.2)]
    }),
    ("uniform to 1 ms", |random, _, _| [0, 1].map(|_| random.random_range(0.0..1e6))),
    ("drifting", |random, call, calls| {
        let scale = 300.0 * (1.0 + 20.0 * call as f64 / calls as f64);
        [log_normal(random, scale, 0.3), log_normal(random, 3.0 * scale, 0.3)]
    }),
    ("phases", |random, call, calls| {
        let scale = if call * 8 / calls % 2 == 0 { 300.0 } else { 3000.0 };
        [log_normal(random, scale, 0.3), log_normal(random, 3.0 * scale, 0.3)]
    }),
];

fn stencil(rank: u64, iterations: usize) -> Vec<Call> {
    let mut random = ChaCha8Rng::seed_from_u64(rank);
    let mut now = 1_000_000_000;
    let mut calls = Vec::new();
    for _ in 0..iterations {
        for terminal in 0..9 {
            let (gap, duration) = match terminal {
                0 => (log_normal(&mut random, 40_000.0, 0.1), log_normal(&mut random, 300.0, 0.3)),
                8 => (log_normal(&mut random, 120.0, 0.3), log_normal(&mut random, 8_000.0, 0.8)),
                receive @ ..4 => {
                    (log_normal(&mut random, 80.0 + receive as f64, 0.2), log_normal(&mut random, 200.0, 0.3))
                }
                _ => (log_normal(&mut random, 90.0, 0.2), log_normal(&mut random, 700.0, 0.4)),
            };
            let start = now + gap as i64;
            now = start + duration as i64;
            calls.push((terminal, start, duration as u64));
        }
    }
    calls
}

fn log_normal(random: &mut ChaCha8Rng, median: f64, sigma: f64) -> f64 {
    // Box and Muller.
    let [one, other]: [f64; 2] = [1.0 - random.random::<f64>(), random.random()];
    median * (sigma * (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()).exp()
}

/// Encodes and decodes each rank, and prints sizes and speeds.
fn report(name: &str, settings: Settings, ranks: &[Vec<Call>]) {
    let (mut bytes, mut reference, mut encoding, mut decoding) = (0, 0.0, 0.0, 0.0);
    let calls: usize = ranks.iter().map(Vec::len).sum();
    for rank in ranks {
        let begin = Instant::now();
        let encoded = encode(Encoder::new(settings), rank).finish();
        encoding += begin.elapsed().as_secs_f64();
        bytes += encoded.len();
        let begin = Instant::now();
        let mut decoder = Decoder::new(&encoded).expect("as encoded");
        decoder.window();
        let sum = rank.iter().fold(0u64, |sum, &(terminal, ..)| {
            sum.wrapping_add(decoder.call(of(terminal)).expect("as encoded").duration_ns)
        });
        std::hint::black_box(sum);
        decoding += begin.elapsed().as_secs_f64();
        reference += code_length(settings, &encoded, rank);
    }
    let bits = 8.0 * bytes as f64;
    println!(
        "  {name}: {bytes} B, {:.3} of {:.0} B, {:.2} bits a value; {:.1} and {:.1} M calls/s",
        bits / reference,
        reference / 8.0,
        bits / (2 * calls) as f64,
        calls as f64 / encoding / 1e6,
        calls as f64 / decoding / 1e6,
    );
}

/// Bits of the adaptive code of what is stored.
fn code_length(settings: Settings, encoded: &[u8], calls: &[Call]) -> f64 {
    let mut decoder = Decoder::new(encoded).expect("as encoded");
    let mut length = CodeLength::new(settings.floor_ns);
    length.window(&decoder.window().expect("as encoded").0);
    for &(terminal, ..) in calls {
        length.call(of(terminal), decoder.call(of(terminal)).expect("as encoded"));
    }
    length.bits()
}

fn encode(mut encoder: Encoder, calls: &[Call]) -> Encoder {
    encoder.window(Window { thread: 0, window: 3, first_seq: 77, start_ns: 999_999_000 });
    for &(terminal, start_ns, duration_ns) in calls {
        encoder.call(of(terminal), Time { start_ns, duration_ns, count: 1 });
    }
    encoder
}

fn of(number: u32) -> Terminal {
    Terminal { number, like: number as u16, folds: false }
}
