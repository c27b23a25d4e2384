//! Work of a thread until some moment.

/// Work of a thread until some moment, and the moment; only ever grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The moment, less the time in which the program had paused ampl; ticks.
    pub at: u64,
    /// Time inside MPI, ticks.
    pub mpi_ticks: u64,
    /// The agent's own time, ticks.
    pub own_ticks: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Calls.
    pub calls: u64,
    /// The program's metrics.
    pub users: Vec<f64>,
}

impl Reading {
    /// A reading of no work, with room for `users` metrics.
    pub fn new(users: usize) -> Self {
        Self { users: vec![0.0; users], ..Self::default() }
    }
}
