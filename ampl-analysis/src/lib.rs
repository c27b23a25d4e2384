//! Analyses of what ranks did: values in, values out; no text, no files, no clock.
#![forbid(unsafe_code)]

pub mod topology;
