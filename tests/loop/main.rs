//! The adaptive loop over real MPI: it neither waits nor makes the job wait, and says who is slow.

mod calls;
mod chance;
mod divided;
mod efficiency;
mod scenario;
mod stress;
