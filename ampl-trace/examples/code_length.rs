//! Bytes of a trace's times beside the adaptive code length of what they hold: `code_length TRACE`.
//!
//! Prints one JSON document: `bytes` of all times sections; `ranks`, bytes of the code of Krichevsky and
//! Trofimov for the binned gaps and durations given rank and signature, which values each of these has being
//! known beforehand; `told`, the same and what it takes to tell them; `one_alphabet`, where only those of the rank
//! are known beforehand; `pooled`, as `ranks` where ranks whose signatures are equal share their counts, as a coder
//! of the whole file could; and `values`, how many there are.

use std::hash::{DefaultHasher, Hash, Hasher};

use ampl_trace::structure::Signature;
use ampl_trace::timed;
use ampl_trace::timing::{CodeLength, Decoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: code_length TRACE")?;
    let trace = ampl_trace::format::read(&std::fs::read(path)?)?;
    let (mut bytes, mut ranks, mut told, mut one_alphabet) = (0, 0.0, 0.0, 0.0);
    let mut pooled = CodeLength::default();
    for rank in trace.ranks.iter().filter(|rank| !rank.times.is_empty()) {
        let structure = trace.structure.rank(rank.process.rank).ok_or("a rank without calls")?;
        let mut decoder = Decoder::counting(&rank.times)?;
        timed::for_each(&structure, &mut decoder, |_, _, _| {})?;
        let counted = decoder.code_length().ok_or("it counts")?;
        bytes += rank.times.len();
        ranks += counted.bits();
        told += counted.bits_with_alphabets();
        one_alphabet += counted.bits_of_one_alphabet();
        pooled.join(counted, |thread, terminal| {
            let thread = structure.threads.iter().find(|other| other.thread == thread);
            thread.and_then(|thread| thread.signatures.get(terminal as usize)).map_or(0, name)
        });
    }
    let [ranks, told, one_alphabet, pooled_bytes] =
        [ranks, told, one_alphabet, pooled.bits()].map(|bits| (bits / 8.0).round() as u64);
    let values = pooled.values();
    println!(
        "{{\"bytes\":{bytes},\"ranks\":{ranks},\"told\":{told},\"one_alphabet\":{one_alphabet},\"pooled\":{pooled_bytes},\"values\":{values}}}"
    );
    Ok(())
}

/// A number that equal signatures share.
fn name(signature: &Signature) -> u64 {
    let Signature { function, flags, site, words } = signature;
    let mut hasher = DefaultHasher::new();
    (function, flags, site, words).hash(&mut hasher);
    hasher.finish()
}
