//! Bytes as coded times: read to an end within bounds, whatever they are; and as times to code, which come back.

use ampl_trace::timing::{Decoder, Encoder, Settings, Terminal, Time, Window};

/// Calls that a byte can hold at most, and bytes that may have been cut off.
const CALLS_PER_BYTE: u64 = 12_000;
const SPARE: u64 = 17;
/// Calls read of one input, so that those of many are tried.
const MOST: usize = 1 << 16;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    read(bytes);
    write(bytes);
}

/// A terminal: some fold, some are alike.
fn of(number: u32) -> Terminal {
    Terminal { number, like: number as u16 % 3, folds: number % 4 == 3 }
}

fn read(bytes: &[u8]) {
    let Ok(mut decoder) = Decoder::new(bytes) else { return };
    let mut calls = 0;
    while let Some((_, entries)) = decoder.window() {
        calls += entries;
        assert!(calls <= CALLS_PER_BYTE * (bytes.len() as u64 + SPARE));
        for call in (0..entries).take(MOST) {
            if decoder.call(of(call as u32 % 7)).is_err() {
                return;
            }
        }
    }
}

/// Takes the bytes as calls, 18 bytes each, and codes them exactly.
fn write(bytes: &[u8]) {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let calls: Vec<(u32, Time)> = bytes
        .as_chunks::<18>()
        .0
        .iter()
        .map(|[terminal, shift, rest @ ..]| {
            let start_ns = word(&rest[..8]) as i64 >> (shift & 63);
            let duration_ns = word(&rest[8..]) >> (shift & 63);
            (u32::from(terminal % 16), Time { start_ns, duration_ns, count: u64::from(*terminal).max(1) })
        })
        .collect();
    let window = Window { thread: 1, window: 2, first_seq: 3, start_ns: 4 };
    let mut encoder = Encoder::new(Settings { error: 0.0, floor_ns: 0 });
    encoder.window(window);
    calls.iter().for_each(|&(terminal, time)| encoder.call(of(terminal), time));
    let coded = encoder.finish();
    let mut decoder = Decoder::new(&coded).expect("as encoded");
    assert_eq!(decoder.window(), Some((window, calls.len() as u64)));
    for (terminal, time) in calls {
        let count = if of(terminal).folds { time.count } else { 1 };
        assert_eq!(decoder.call(of(terminal)), Ok(Time { count, ..time }));
    }
}
