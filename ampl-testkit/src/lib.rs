//! Seeded synthetic jobs and naive oracles.
#![forbid(unsafe_code)]
