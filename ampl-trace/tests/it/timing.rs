//! Coded times: within their bounds, close to their code length, and read from any bytes without harm.

use ampl_trace::timing::{Decoder, Encoder, Settings, Terminal, Time, Window};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use code_length::CodeLength;

#[path = "../../benches/code_length/mod.rs"]
mod code_length;

/// A window and its calls: terminal, whether it folds, time.
type Calls = (Window, Vec<(u32, bool, Time)>);

/// A terminal; some are alike.
fn of(number: u32, folds: bool) -> Terminal {
    Terminal { number, like: number as u16, folds }
}

const MILLION: f64 = 1e6;

fn encode(settings: Settings, windows: &[Calls]) -> Vec<u8> {
    let mut encoder = Encoder::new(settings);
    for (window, calls) in windows {
        encoder.window(*window);
        calls.iter().for_each(|&(terminal, folds, time)| encoder.call(of(terminal, folds), time));
    }
    encoder.finish()
}

/// True where the second window begins with the call behind the last of the first.
fn follows((before, calls): &Calls, window: &Window) -> bool {
    let calls = calls.iter().map(|&(_, folds, time)| if folds { time.count } else { 1 });
    before.thread == window.thread && calls.fold(before.first_seq, u64::wrapping_add) == window.first_seq
}

/// Decodes what was encoded and checks every bound; for calls that `overlap`, or begin long before their window, only
/// the bounds that hold for them.
fn check(settings: Settings, windows: &[Calls], overlap: bool) {
    let bytes = encode(settings, windows);
    let mut decoder = Decoder::new(&bytes).expect("as encoded");
    let error = decoder.settings().error;
    assert!(error <= settings.error || error == 0.0 && settings.error < 0.001);
    assert_eq!(decoder.settings().floor_ns, settings.floor_ns);
    let error = (error * MILLION).round() as i128;
    let floor = i128::from(settings.floor_ns);
    let mut before: Option<&Calls> = None;
    let (mut begin, mut end, mut true_end) = (0i128, 0i128, None::<i128>);
    for of_window @ (window, calls) in windows {
        let (found, entries) = decoder.window().expect("a window");
        let goes_on = before.replace(of_window).is_some_and(|before| follows(before, window));
        let start_ns = if goes_on { found.start_ns } else { window.start_ns };
        assert_eq!((found, entries), (Window { start_ns, ..*window }, calls.len() as u64));
        if !goes_on {
            (begin, end, true_end) = (i128::from(window.start_ns), i128::MIN, None);
        }
        for &(terminal, folds, time) in calls {
            let stored = decoder.call(of(terminal, folds)).expect("as encoded");
            assert_eq!(stored.count, if folds { time.count } else { 1 });
            let [start, stored_start] = [time, stored].map(|time| i128::from(time.start_ns));
            let [duration, stored_duration] = [time, stored].map(|time| i128::from(time.duration_ns));
            let distance = (stored_duration - duration).abs();
            assert!(
                distance <= floor || distance * MILLION as i128 <= error * duration,
                "{stored_duration} for {duration}"
            );
            if error == 0 && floor == 0 {
                assert_eq!((stored_start, stored_duration), (start, duration));
            }
            if !overlap {
                assert!(stored_start >= end, "{stored_start} before {end}");
                if let Some(gap) = true_end.map(|end| start - end).filter(|_| floor == 0) {
                    let (off, million) = ((stored_start - end - gap).abs(), MILLION as i128);
                    assert!(off * million * million <= (2 * million + error) * error * gap, "{off} of {gap}");
                }
                let since = if start < begin { start + 2 * duration - begin } else { start - begin };
                let distance = (stored_start - start).abs() - floor;
                assert!(
                    distance * MILLION as i128 <= error * since,
                    "{stored_start} for {start} after {begin}"
                );
            }
            end = stored_start + stored_duration;
            true_end = Some(start + duration);
        }
        assert!(decoder.call(0.into()).is_err(), "no more calls");
    }
    assert_eq!(decoder.window(), None);
}

/// Windows as programs have them: calls do not overlap, and end in their window, which may follow the one
/// before.
fn runs() -> impl Strategy<Value = Vec<Calls>> {
    let length =
        || (0..45u32, any::<u32>()).prop_map(|(shift, value)| (u64::from(value) << 12 >> shift) as i64);
    let call = (0..4u32, length(), length(), 1..9u64);
    let window = (any::<bool>(), length(), prop::collection::vec(call, 1..60));
    prop::collection::vec(window, 1..6).prop_map(|windows| {
        let (mut now, mut seq) = (0, 0);
        let windows = windows.into_iter().zip(0..).map(|((gap, back, calls), window)| {
            if gap {
                (now, seq) = (now + back, seq + 7);
            }
            let first_seq = seq;
            let mut start_ns = None;
            let calls = calls.into_iter().map(|(terminal, gap, duration, count)| {
                let time = Time { start_ns: now + gap, duration_ns: duration as u64, count };
                // The first may begin before its window.
                start_ns.get_or_insert(now + gap + if back % 2 == 0 { duration / 2 } else { -(gap / 2) });
                now = time.start_ns + duration;
                seq += if terminal == 3 { count } else { 1 };
                (terminal, terminal == 3, time)
            });
            let calls = calls.collect();
            (Window { thread: 0, window, first_seq, start_ns: start_ns.unwrap_or(now) }, calls)
        });
        windows.collect()
    })
}

/// Times as programs have them, and times as no program has them.
fn time(before: i64) -> impl Strategy<Value = Time> {
    let start = prop_oneof![
        6 => (0..64u32, any::<i64>()).prop_map(move |(shift, gap)| before.saturating_add(gap >> shift)),
        1 => any::<i64>(),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
    ];
    let wide = || (0..64u32, any::<u64>()).prop_map(|(shift, value)| value >> shift);
    (start, prop_oneof![8 => wide(), 1 => Just(0), 1 => Just(u64::MAX)], wide())
        .prop_map(|(start_ns, duration_ns, count)| Time { start_ns, duration_ns, count: count.max(1) })
}

fn windows() -> impl Strategy<Value = Vec<Calls>> {
    let window = (0..4u32, any::<u64>(), 0..64u32, any::<i64>(), 0..64u32).prop_map(
        |(thread, window, shift, start_ns, shorter)| Window {
            thread: if thread == 3 { u32::MAX } else { thread },
            window: window >> shift,
            first_seq: window,
            start_ns: start_ns >> shorter,
        },
    );
    let one = window.prop_flat_map(|window| {
        // Terminal 3 folds.
        let call =
            (0..4u32, time(window.start_ns)).prop_map(|(terminal, time)| (terminal, terminal == 3, time));
        (Just(window), prop::collection::vec(call, 0..40))
    });
    prop::collection::vec(one, 0..5)
}

fn settings() -> impl Strategy<Value = Settings> {
    let error = prop_oneof![Just(0.0), Just(0.1), Just(0.01), Just(0.29), 0.0..1.5f64];
    let floor = prop_oneof![3 => Just(0), 1 => 0..100_000u64, 1 => Just(u64::MAX), 1 => any::<u64>()];
    (error, floor).prop_map(|(error, floor_ns)| Settings { error, floor_ns })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_times_come_back_with_durations_within_bounds(settings in settings(), windows in windows()) {
        check(settings, &windows, true);
    }

    #[test]
    fn calls_in_a_row_stay_in_a_row_and_where_they_were(settings in settings(), runs in runs()) {
        check(settings, &runs, false);
    }

    #[test]
    fn any_times_come_back_exactly_at_error_0(windows in windows()) {
        check(Settings { error: 0.0, floor_ns: 0 }, &windows, true);
    }

    #[test]
    fn changed_bytes_are_read_to_an_end(
        settings in settings(),
        windows in windows(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = encode(settings, &windows);
        for (at, change) in changes {
            *at.get_mut(&mut bytes) ^= change;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all(&bytes);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes: Vec<u8>) {
        read_all(&bytes);
    }
}

/// Reads all windows, and checks that their number is bounded.
fn read_all(bytes: &[u8]) {
    let Ok(mut decoder) = Decoder::new(bytes) else { return };
    let mut read = 0;
    while let Some((_, entries)) = decoder.window() {
        for call in 0..entries {
            if decoder.call(of(call as u32 % 5, call % 5 == 3)).is_err() {
                return;
            }
            read += 1;
        }
    }
    assert!(read <= 12_000 * (bytes.len() as u64 + 17));
}

const WINDOW: Window = Window { thread: 0, window: 3, first_seq: 77, start_ns: 1_000_000_000 };

/// One window of `calls` calls of ten signatures, with gaps and durations from `source`.
fn run(seed: u64, calls: usize, mut source: impl FnMut(&mut ChaCha8Rng, usize) -> [f64; 2]) -> Vec<Calls> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut now = WINDOW.start_ns;
    let mut times = Vec::new();
    for call in 0..calls {
        let [gap, duration] = source(&mut random, call);
        let time = Time { start_ns: now + gap as i64, duration_ns: duration as u64, count: 1 };
        now = time.start_ns + duration as i64;
        times.push((call as u32 % 10, false, time));
    }
    vec![(WINDOW, times)]
}

fn log_normal(random: &mut ChaCha8Rng, median: f64, sigma: f64) -> f64 {
    // Box and Muller.
    let [one, other]: [f64; 2] = [1.0 - random.random::<f64>(), random.random()];
    median * (sigma * (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()).exp()
}

/// Size of the coded times, over the code length it is compared with.
fn ratio(settings: Settings, windows: &[Calls]) -> f64 {
    let mut encoder = Encoder::new(settings);
    for (window, calls) in windows {
        encoder.window(*window);
        calls.iter().for_each(|&(terminal, folds, time)| encoder.call(of(terminal, folds), time));
    }
    let bytes = encoder.finish();
    let mut decoder = Decoder::new(&bytes).expect("as encoded");
    let mut length = CodeLength::new(settings.floor_ns);
    for (_, calls) in windows {
        length.window(&decoder.window().expect("as encoded").0);
        for &(terminal, folds, _) in calls {
            let terminal = of(terminal, folds);
            length.call(terminal, decoder.call(terminal).expect("as encoded"));
        }
    }
    8.0 * bytes.len() as f64 / length.bits()
}

#[test]
fn code_length_of_two_values_in_turn_is_that_of_the_source() {
    let mut length = CodeLength::new(10);
    length.window(&WINDOW);
    let mut start_ns = WINDOW.start_ns;
    // One signature has always the same duration, and another two in turn; those within the floor are one.
    for (number, duration_ns) in [0, 100, 10, 100].into_iter().flat_map(|other| [(1, 700), (2, other)]) {
        length.call(of(number, false), Time { start_ns, duration_ns, count: 1 });
        start_ns += duration_ns as i64;
    }
    // Two values: (1/2)/1 · (1/2)/2 · (3/2)/3 · (3/2)/4; a value without alternatives is sure.
    assert!((length.bits() - (128.0f64 / 3.0).log2()).abs() < 1e-9, "{}", length.bits());
}

const TENTH: Settings = Settings { error: 0.1, floor_ns: 0 };

#[test]
fn steady_sources_cost_what_an_adaptive_code_does() {
    for sigma in [0.1, 0.5, 1.0] {
        let windows = run(1, 10_000, |random, call| {
            let scale = 300.0 * (1 + call % 10) as f64;
            [log_normal(random, scale, sigma), log_normal(random, 3.0 * scale, sigma)]
        });
        for error in [0.02, 0.1, 0.2] {
            let ratio = ratio(Settings { error, ..TENTH }, &windows);
            // Less than a bit a value: corrections weigh more.
            let most = if error > 0.1 { 1.06 } else { 1.05 };
            assert!(ratio <= most, "sigma {sigma}, error {error}: {ratio}");
        }
    }
}

#[test]
fn changing_sources_cost_less_than_an_adaptive_code() {
    let drifting = run(2, 10_000, |random, call| {
        let scale = 300.0 + call as f64;
        [log_normal(random, scale, 0.3), log_normal(random, 3.0 * scale, 0.3)]
    });
    let phases = run(3, 10_000, |random, call| {
        let scale = if call / 1000 % 2 == 0 { 300.0 } else { 3000.0 };
        [log_normal(random, scale, 0.3), log_normal(random, 3.0 * scale, 0.3)]
    });
    for windows in [drifting, phases] {
        let ratio = ratio(TENTH, &windows);
        assert!(ratio <= 0.95, "{ratio}");
    }
}

#[test]
fn a_hundred_calls_of_each_signature_learn_soon() {
    let windows = run(4, 1000, |random, call| {
        let scale = 300.0 * (1 + call % 10) as f64;
        [log_normal(random, scale, 0.5), log_normal(random, 3.0 * scale, 0.5)]
    });
    let ratio = ratio(TENTH, &windows);
    assert!(ratio <= 1.1, "{ratio}");
}

#[test]
fn little_takes_few_bytes() {
    assert!(encode(TENTH, &[]).len() <= 8);
    let windows = run(5, 10, |random, _| [log_normal(random, 300.0, 0.3), log_normal(random, 900.0, 0.3)]);
    assert!(encode(TENTH, &windows).len() <= 40);
}

#[test]
fn windows_in_a_row_take_few_bytes() {
    let calls = run(5, 100, |_, _| [3.0, 4.0]).remove(0).1;
    let windows: Vec<Calls> = (0..50u32)
        .map(|at| {
            let [window, first_seq] = [3, 100].map(|stride| u64::from(at) * stride);
            let start_ns = i64::from(at) * 1_000_000;
            let calls = calls.iter().map(|&(terminal, folds, time)| {
                (terminal, folds, Time { start_ns: time.start_ns - WINDOW.start_ns + start_ns, ..time })
            });
            (Window { thread: 0, window, first_seq, start_ns }, calls.collect())
        })
        .collect();
    // Thread, number, calls before, start (three bytes), entries.
    assert!(encode(TENTH, &windows).len() <= 50 * 7 + 60, "{}", encode(TENTH, &windows).len());
}

#[test]
fn what_repeats_costs_almost_nothing_and_is_read_all_the_same() {
    // Integers that have bins of their own, so that the reader's gaps stay the same.
    let steady = run(6, 50_000, |_, _| [3.0, 4.0]);
    for floor_ns in [0, 10_000] {
        let settings = Settings { floor_ns, ..TENTH };
        let bytes = encode(settings, &steady).len();
        assert!(bytes < 100, "floor {floor_ns}: {bytes}");
        check(settings, &steady, false);
    }
}

#[test]
fn errors_do_not_add_up() {
    let windows = run(7, 30_000, |random, _| [log_normal(random, 1e4, 0.5), log_normal(random, 1e3, 0.5)]);
    let bytes = encode(TENTH, &windows);
    let mut decoder = Decoder::new(&bytes).expect("as encoded");
    decoder.window();
    for &(terminal, folds, time) in &windows[0].1 {
        let stored = decoder.call(of(terminal, folds)).expect("as encoded");
        // A tenth of the longest gap, not of the third of a second that all take together.
        assert!(stored.start_ns.abs_diff(time.start_ns) <= 20_000);
    }
}

/// The first call of a window may follow a long one at once.
#[test]
fn what_a_long_call_is_off_by_is_in_no_short_gap() {
    let calls = run(9, 1000, |random, call| {
        let long = call % 5 == 4;
        [if call % 5 == 0 { 3.0 } else { 180.0 }, log_normal(random, if long { 1e7 } else { 300.0 }, 0.3)]
    });
    // A window ends with each of the long ones.
    let calls = calls[0].1.chunks(5).zip(0..);
    let windows: Vec<Calls> = calls
        .map(|(calls, at)| {
            let start_ns = calls[0].2.start_ns;
            (Window { thread: 0, window: at, first_seq: 5 * at, start_ns }, calls.to_vec())
        })
        .collect();
    let bytes = encode(TENTH, &windows);
    let mut decoder = Decoder::new(&bytes).expect("as encoded");
    let mut end = None;
    for (_, calls) in &windows {
        decoder.window();
        for &(terminal, folds, _) in calls {
            let stored = decoder.call(of(terminal, folds)).expect("as encoded");
            let gap = end.map_or(0, |end| stored.start_ns - end);
            // Its own error, and as much again that it corrects.
            assert!(gap <= 180 * 121 / 100, "{gap}");
            end = Some(stored.start_ns + stored.duration_ns as i64);
        }
    }
}

#[test]
fn short_durations_keep_their_mean() {
    let windows = run(8, 10_000, |random, call| [200.0, log_normal(random, 300.0 + (call % 10) as f64, 0.2)]);
    let bytes = encode(Settings { error: 0.1, floor_ns: 10_000 }, &windows);
    let mut decoder = Decoder::new(&bytes).expect("as encoded");
    decoder.window();
    let (mut sum, mut stored) = (0, 0);
    for &(terminal, folds, time) in &windows[0].1 {
        sum += time.duration_ns;
        stored += decoder.call(of(terminal, folds)).expect("as encoded").duration_ns;
    }
    assert!(stored.abs_diff(sum) <= sum / 10, "{stored} of {sum}");
    assert!(bytes.len() < 150, "{}", bytes.len());
}

#[test]
fn a_window_before_its_calls_are_read_ends_it_all() {
    let mut windows = run(9, 10, |_, _| [100.0, 200.0]);
    // One signature, so that no wrong value comes by chance.
    windows[0].1.iter_mut().for_each(|(terminal, ..)| *terminal = 0);
    let bytes = encode(TENTH, &[windows[0].clone(), windows[0].clone()]);
    let mut decoder = Decoder::new(&bytes).expect("as encoded");
    decoder.window();
    decoder.call(0.into()).expect("as encoded");
    assert_eq!(decoder.window(), None);
    assert!(decoder.call(0.into()).is_err());
}

#[test]
fn the_same_times_are_the_same_bytes_on_every_machine() {
    // Integers only, so that only the coder could differ.
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33 >> (state >> 60)
    };
    let mut calls = Vec::new();
    let mut now = WINDOW.start_ns;
    for call in 0..2000 {
        let time = Time { start_ns: now + next() as i64 % 5000, duration_ns: next(), count: 1 + next() % 9 };
        now = time.start_ns + time.duration_ns as i64;
        calls.push((call % 7, call % 7 == 3, time));
    }
    let sums = [(0.0, 0), (0.1, 0), (0.01, 0), (0.1, 10_000)].map(|(error, floor_ns)| {
        let bytes = encode(Settings { error, floor_ns }, &[(WINDOW, calls.clone())]);
        (bytes.len(), crc32fast::hash(&bytes))
    });
    let expected =
        [(9184, 1_825_230_096), (2394, 1_056_449_376), (3893, 3_328_973_723), (1395, 2_511_846_803)];
    assert_eq!(sums, expected);
}
