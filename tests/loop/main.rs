//! The adaptive loop over real MPI: it neither waits nor makes the job wait, and names slow ranks.

mod calls;
mod chance;
mod divided;
mod efficiency;
mod scenario;
mod stress;
