//! A population, CSV or Parquet, of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ampl_fuzzed::population::check(bytes));
