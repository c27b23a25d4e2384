//! Bytes of a trace's times beside the adaptive code length of what they hold: `code_length TRACE`.
//!
//! Prints one JSON document: `bytes` of all times sections; `ranks`, bytes of the code of Krichevsky and
//! Trofimov for the stored gaps and durations given rank and signature, which values each of these has being
//! known beforehand.

use ampl_trace::timed;
use ampl_trace::timing::Decoder;

use code_length::CodeLength;

#[path = "../benches/code_length/mod.rs"]
mod code_length;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: code_length TRACE")?;
    let trace = ampl_trace::format::read(&std::fs::read(path)?)?;
    let (mut bytes, mut bits) = (0, 0.0);
    for rank in trace.ranks.iter().filter(|rank| !rank.times.is_empty()) {
        let structure = trace.structure.rank(rank.process.rank).ok_or("a rank without calls")?;
        let mut decoder = Decoder::new(&rank.times)?;
        let mut length = CodeLength::new(decoder.settings().floor_ns);
        let mut open = None;
        timed::for_each(&structure, &mut decoder, |window, terminal, time| {
            if open.replace(window) != Some(window) {
                length.window(&window);
            }
            length.call(terminal, time);
        })?;
        bytes += rank.times.len();
        bits += length.bits();
    }
    let ranks = (bits / 8.0).round() as u64;
    println!("{{\"bytes\":{bytes},\"ranks\":{ranks}}}");
    Ok(())
}
