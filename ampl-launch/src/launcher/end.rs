//! The end of a job in which a rank cannot start its program.

use std::time::Duration;

use crate::{environment, inherited};

/// Time in which a launcher passes on what another rank of this job has just written.
const IS_READ: Duration = Duration::from_millis(500);

/// Time in which Hydra's daemon passes on what this rank has written.
const PASSES_ON: Duration = Duration::from_secs(1);

/// Has the launcher end all ranks with `status`: after a rank that ends before `MPI_Init`, Hydra alone goes on waiting.
pub fn end_job(status: u8) {
    let Some(connection) = environment::hydra() else { return };
    std::thread::sleep(PASSES_ON);
    inherited::write(connection, format!("cmd=abort exitcode={status}\n").as_bytes());
}

/// Waits until the rank that reports has done so: a launcher that sees a rank fail kills the others.
pub fn wait_for_report() {
    std::thread::sleep(IS_READ);
}
