//! Writing results to stdout.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use serde::Serialize;

/// Standard output, buffered.
pub type Stdout = BufWriter<StdoutLock<'static>>;

/// Lets `write` print; a reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// Any other failure to write.
pub fn print(write: impl FnOnce(&mut Stdout) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // What is left in the buffer has no reader; dropping the buffer whole would try to write it.
            let _ = out.into_parts();
            Ok(())
        }
        result => result,
    }
}

/// Prints `value` as one JSON document.
///
/// # Errors
/// Those of [`print`].
pub fn json(value: &impl Serialize) -> io::Result<()> {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}
