//! A record of an archive of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ampl_fuzzed::record::check(bytes));
