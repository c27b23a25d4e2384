//! The MPI and the number of ranks that a launcher's variables name.

use std::fmt;

/// An MPI that the replayer is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// Open MPI.
    OpenMpi,
    /// MPICH and its relatives.
    Mpich,
}

impl Mpi {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OpenMpi, Self::Mpich];

    /// The name in `--mpi` and of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// The MPI of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mpi| mpi.name() == name)
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// A process as its launcher started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Its rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: Option<u32>,
    /// The MPI that the launcher belongs to; `None` where it starts any.
    pub mpi: Option<Mpi>,
}

/// Variables of rank and size by launcher; Slurm's last, since launchers inside of its steps pass them on.
const FAMILIES: [(&str, &str, Option<Mpi>); 7] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", Some(Mpi::OpenMpi)),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", Some(Mpi::Mpich)),
    ("PALS_RANKID", "PALS_SIZE", Some(Mpi::Mpich)),
    ("PMI_RANK", "PMI_SIZE", Some(Mpi::Mpich)),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", None),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE", None),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", None),
];

impl Launched {
    /// The process by its environment; `None` where no known launcher started it.
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse().ok();
        let mut found = FAMILIES
            .iter()
            .filter_map(|&(rank, size, mpi)| Some(Self { rank: number(rank)?, ranks: number(size), mpi }));
        let mut first = found.next()?;
        // Slurm's own interface has the variables of MPICH's launcher, for either MPI.
        if first.mpi == Some(Mpi::Mpich) && variable("SLURM_PROCID").is_some() && variable("PMI_FD").is_none()
        {
            first.mpi = None;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Launched> {
        let find = |name: &str| variables.iter().find(|(of, _)| *of == name);
        Launched::of(&|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let launched = |rank, ranks, mpi| Some(Launched { rank, ranks: Some(ranks), mpi });
        let open = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(of(&open), launched(3, 4, Some(Mpi::OpenMpi)));
        let hydra = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_FD", "9"), ("SLURM_PROCID", "0")];
        assert_eq!(of(&hydra), launched(1, 2, Some(Mpi::Mpich)));
        let srun = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("SLURM_PROCID", "1")];
        assert_eq!(of(&srun), launched(1, 2, None));
        assert_eq!(of(&[("PATH", "x")]), None);
    }
}
