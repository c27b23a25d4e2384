//! Writing results to stdout.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use ampl_report::terminal::Plain;
use serde::Serialize;

use crate::failure::{Failure, OTHER};

/// Standard output, buffered; names in it steer no terminal.
pub type Stdout = BufWriter<Plain<StdoutLock<'static>>>;

/// Lets `write` print; a reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub fn print(write: impl FnOnce(&mut Stdout) -> io::Result<()>) -> anyhow::Result<()> {
    print_as(false, write)
}

/// [`print`] of `json`, or of text.
pub fn print_as(json: bool, write: impl FnOnce(&mut Stdout) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(Plain::new(io::stdout().lock(), json));
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // The rest of the buffer has no reader; dropping it whole would try to write it.
            let _ = out.into_parts();
            Ok(())
        }
        result => result.map_err(|error| {
            let fix = "make room, or write it somewhere else";
            Failure::message(OTHER, format!("cannot write: {error}"), "standard output", fix)
        }),
    }
}

/// Prints `text`; errors are those of [`print`].
pub fn text(text: &str) -> anyhow::Result<()> {
    print(|out| out.write_all(text.as_bytes()))
}

/// Prints `value` as one JSON document; errors are those of [`print`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print_as(true, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}
