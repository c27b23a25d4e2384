//! A node between a parent and children that say anything.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ampl_fuzzed::node::check(bytes));
