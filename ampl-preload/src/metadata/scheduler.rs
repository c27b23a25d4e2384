//! The scheduler's job, by the variables that it sets.

use ampl_trace::metadata::{Job, cut};

/// A scheduler's name, and its variables for number, name, partition and nodes of a job; the first that is set counts.
struct Variables {
    scheduler: &'static str,
    id: &'static [&'static str],
    name: &'static [&'static str],
    partition: &'static [&'static str],
    nodes: &'static [&'static str],
}

/// Schedulers. A job of one may start another's inside: the inner ones come first.
const SCHEDULERS: [Variables; 6] = [
    Variables {
        scheduler: "flux",
        id: &["FLUX_JOB_ID"],
        name: &["FLUX_JOB_NAME"],
        partition: &["FLUX_JOB_QUEUE"],
        nodes: &["FLUX_JOB_NODELIST"],
    },
    Variables {
        scheduler: "slurm",
        id: &["SLURM_JOB_ID", "SLURM_JOBID"],
        name: &["SLURM_JOB_NAME"],
        partition: &["SLURM_JOB_PARTITION"],
        nodes: &["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"],
    },
    Variables {
        scheduler: "pbs",
        id: &["PBS_JOBID"],
        name: &["PBS_JOBNAME"],
        partition: &["PBS_QUEUE"],
        nodes: &["PBS_NODEFILE"],
    },
    Variables {
        scheduler: "lsf",
        id: &["LSB_JOBID"],
        name: &["LSB_JOBNAME"],
        partition: &["LSB_QUEUE"],
        nodes: &["LSB_MCPU_HOSTS", "LSB_HOSTS"],
    },
    Variables {
        scheduler: "oar",
        id: &["OAR_JOB_ID", "OAR_JOBID"],
        name: &["OAR_JOB_NAME"],
        partition: &["OAR_QUEUE"],
        nodes: &["OAR_NODEFILE"],
    },
    Variables {
        scheduler: "grid engine",
        id: &["JOB_ID"],
        name: &["JOB_NAME"],
        partition: &["QUEUE"],
        nodes: &["PE_HOSTFILE"],
    },
];

/// The scheduler's job that this process is in.
pub fn job() -> Option<Job> {
    job_by(|name| std::env::var(name).ok())
}

fn job_by(variable: impl Fn(&str) -> Option<String>) -> Option<Job> {
    let first = |names: &[&str]| {
        names.iter().find_map(|name| variable(name)).filter(|value| !value.is_empty()).map(cut)
    };
    SCHEDULERS.iter().find_map(|known| {
        Some(Job {
            scheduler: known.scheduler.into(),
            id: first(known.id)?,
            name: first(known.name),
            partition: first(known.partition),
            nodes: first(known.nodes),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_its_own_scheduler() {
        let set = |pairs: &'static [(&str, &str)]| {
            job_by(move |name| pairs.iter().find(|(one, _)| *one == name).map(|(_, value)| value.to_string()))
        };
        assert_eq!(set(&[("SLURM_JOB_ID", "")]), None);
        let job =
            set(&[("SLURM_JOB_ID", "7"), ("SLURM_JOB_PARTITION", "long"), ("SLURM_JOB_NODELIST", "n[1-4]")]);
        let job = job.unwrap();
        assert_eq!((job.scheduler.as_str(), job.id.as_str(), &job.name), ("slurm", "7", &None));
        assert_eq!((job.partition.as_deref(), job.nodes.as_deref()), (Some("long"), Some("n[1-4]")));
        // Flux runs inside of a job of Slurm's.
        let inner = set(&[("SLURM_JOB_ID", "7"), ("FLUX_JOB_ID", "f1")]).unwrap();
        assert_eq!((inner.scheduler.as_str(), inner.id.as_str()), ("flux", "f1"));
    }
}
