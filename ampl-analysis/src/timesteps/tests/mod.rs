//! Sequences against their expansions, and loops of programs whose steps are known.

mod jobs;
mod programs;
mod sequences;

use ampl_trace::grammar::{Builder, Grammar};

/// The grammar of `calls`.
fn grammar(calls: &[u32]) -> Grammar {
    let mut builder = Builder::new();
    calls.iter().for_each(|&call| builder.push(call, 1));
    builder.into_grammar()
}
