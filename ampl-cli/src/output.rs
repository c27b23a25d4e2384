//! Writing results to stdout.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use serde::Serialize;

use crate::failure::{Failure, OTHER};

/// Standard output, buffered.
pub type Stdout = BufWriter<StdoutLock<'static>>;

/// Lets `write` print; a reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub fn print(write: impl FnOnce(&mut Stdout) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
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

/// Prints `text`.
///
/// # Errors
/// Errors of [`print`].
pub fn text(text: &str) -> anyhow::Result<()> {
    print(|out| out.write_all(text.as_bytes()))
}

/// Prints `value` as one JSON document.
///
/// # Errors
/// Errors of [`print`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}
