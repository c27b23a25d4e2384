//! Efficiencies of each run against the one with the fewest ranks.

use super::point::Point;
use super::{Mode, Scope};
use crate::comparison::RunQuantity;

/// Value below which a factor has fallen.
pub const BELOW: f64 = 0.8;

/// Factor of the efficiency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// All factors together.
    Global,
    /// Load balance times communication.
    Parallel,
    /// Mean over greatest compute time.
    LoadBalance,
    /// Greatest compute time over run time.
    Communication,
    /// Compute time of all ranks against the reference.
    ComputationScalability,
    /// Instructions of all ranks against the reference.
    InstructionScalability,
    /// Instructions in a cycle against the reference.
    IpcScalability,
    /// Cycles in a second of computing against the reference.
    FrequencyScalability,
}

impl Factor {
    /// All factors, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Global,
        Self::Parallel,
        Self::LoadBalance,
        Self::Communication,
        Self::ComputationScalability,
        Self::InstructionScalability,
        Self::IpcScalability,
        Self::FrequencyScalability,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Parallel => "parallel",
            Self::LoadBalance => "load_balance",
            Self::Communication => "communication",
            Self::ComputationScalability => "computation_scalability",
            Self::InstructionScalability => "instruction_scalability",
            Self::IpcScalability => "ipc_scalability",
            Self::FrequencyScalability => "frequency_scalability",
        }
    }
}

/// A run of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Ranks.
    pub ranks: u32,
    /// Hosts.
    pub nodes: u32,
    /// Length of the run, nanoseconds.
    pub elapsed_ns: Option<f64>,
    /// Reference's length over this one's.
    pub speedup: Option<f64>,
    /// Factors in the order of [`Factor::ALL`]; none of what was not measured.
    pub factors: [Option<f64>; Factor::ALL.len()],
    /// Instructions of all ranks.
    pub instructions: Option<f64>,
    /// Instructions in a cycle.
    pub ipc: Option<f64>,
    /// Cycles in a second of computing.
    pub frequency_hz: Option<f64>,
    /// Bytes sent by a rank, mean.
    pub bytes_per_rank: Option<f64>,
    /// Messages sent by a rank, mean.
    pub messages_per_rank: Option<f64>,
    /// Steps of the timestep loop.
    pub steps: Option<u64>,
}

impl Row {
    /// A factor.
    pub fn factor(&self, factor: Factor) -> Option<f64> {
        self.factors[factor as usize]
    }
}

/// First number of ranks at which a factor is low.
#[derive(Clone, Debug, PartialEq)]
pub struct Fall {
    /// The factor.
    pub factor: Factor,
    /// Ranks.
    pub ranks: u32,
    /// Its value there.
    pub value: f64,
    /// Call site whose share of the ranks' time grew most since the reference, and by how much; none of factors of
    /// computing.
    pub site: Option<(Scope, f64)>,
}

/// A row for each of `points`; the first is the reference.
///
/// # Source
/// POP standard metrics: computation scalability is the reference's compute time of all ranks over this run's; in a weak
/// study that of a rank.
pub fn rows(points: &[Point], mode: Mode) -> Vec<Row> {
    let Some(reference) = points.first() else { return Vec::new() };
    let ipc = |point: &Point| Some(point.counters.instructions? / point.counters.cycles?);
    let frequency = |point: &Point| Some(point.counters.cycles? / (point.compute_ns? * 1e-9));
    points
        .iter()
        .map(|point| {
            let more = match mode {
                Mode::Strong => 1.0,
                Mode::Weak => f64::from(point.ranks) / f64::from(reference.ranks.max(1)),
            };
            let against = |of: &dyn Fn(&Point) -> Option<f64>| {
                let (one, other) = (of(reference)?, of(point)?);
                (other > 0.0).then(|| one / other)
            };
            let parallel = point.time(RunQuantity::Parallel);
            let computation = against(&|point| point.compute_ns).map(|ratio| ratio * more);
            let factors = [
                parallel.zip(computation).map(|(parallel, computation)| parallel * computation),
                parallel,
                point.time(RunQuantity::LoadBalance),
                point.time(RunQuantity::Communication),
                computation,
                against(&|point| point.counters.instructions).map(|ratio| ratio * more),
                against(&ipc).map(|ratio| 1.0 / ratio),
                against(&frequency).map(|ratio| 1.0 / ratio),
            ];
            Row {
                ranks: point.ranks,
                nodes: point.nodes,
                elapsed_ns: point.time(RunQuantity::Elapsed),
                speedup: against(&|point| point.time(RunQuantity::Elapsed)),
                factors,
                instructions: point.counters.instructions,
                ipc: ipc(point),
                frequency_hz: frequency(point),
                bytes_per_rank: point.bytes_per_rank,
                messages_per_rank: point.messages_per_rank,
                steps: point.steps,
            }
        })
        .collect()
}

/// First number of ranks at which each factor is below [`BELOW`].
pub fn falls(points: &[Point], rows: &[Row]) -> Vec<Fall> {
    let fall = |factor: Factor| {
        let at = rows.iter().position(|row| row.factor(factor).is_some_and(|value| value < BELOW))?;
        let in_mpi =
            matches!(factor, Factor::Global | Factor::Parallel | Factor::LoadBalance | Factor::Communication);
        let site = if in_mpi { most_grown(points, at) } else { None };
        Some(Fall { factor, ranks: rows[at].ranks, value: rows[at].factor(factor)?, site })
    };
    Factor::ALL.into_iter().filter_map(fall).collect()
}

/// The call site whose share of time grew most from the reference to that point; of the reference the largest.
fn most_grown(points: &[Point], at: usize) -> Option<(Scope, f64)> {
    let before = points[0].shares();
    let grown = |(site, share): (&Scope, f64)| {
        let before = if at == 0 { 0.0 } else { before.get(site).copied().unwrap_or(0.0) };
        (site.clone(), share - before)
    };
    let sites = points[at].shares().into_iter().map(grown);
    sites.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, grown)| *grown > 0.0)
}
