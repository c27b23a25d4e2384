//! Journals in the memory of other hosts, and the command that copies them here.

use std::collections::BTreeMap;
use std::path::Path;

use ampl_core::units::RankSet;

use crate::environment;
use crate::launcher::Flavour;
use ampl_report::human::plural;

/// Messages about journals on `hosts`, and the one line that copies them here.
pub fn said(hosts: &BTreeMap<String, RankSet>, run: &Path, launcher: Option<Flavour>) -> Vec<String> {
    if hosts.is_empty() {
        return Vec::new();
    }
    let each: Vec<String> = hosts
        .iter()
        .map(|(host, ranks)| format!("{host} ({}: {ranks})", plural(ranks.len(), "rank")))
        .collect();
    let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    vec![
        format!("ampl: journals are in the memory of other hosts: {}", each.join(", ")),
        format!(
            "ampl: bring them home: {} && ampl recover {}",
            line(&hosts.keys().map(String::as_str).collect::<Vec<_>>(), &run, launcher),
            run.display()
        ),
    ]
}

/// The command line that starts `ampl recover --node` on these hosts.
fn line(hosts: &[&str], run: &Path, launcher: Option<Flavour>) -> String {
    let recover = format!("ampl recover --node {}", run.display());
    let all = hosts.join(",");
    match launcher {
        Some(Flavour::Slurm) => format!("srun {recover}"),
        Some(Flavour::Hydra) => format!("mpiexec -hosts {all} -ppn 1 -n {} {recover}", hosts.len()),
        Some(_) => format!("mpirun --host {all} -n {} {recover}", hosts.len()),
        None if environment::in_slurm() => format!("srun {recover}"),
        None => hosts.iter().map(|host| format!("ssh {host} {recover}")).collect::<Vec<_>>().join(" && "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_launchers() {
        let line = |launcher| line(&["b", "c"], Path::new("/run"), launcher);
        assert_eq!(line(Some(Flavour::Slurm)), "srun ampl recover --node /run");
        assert_eq!(line(Some(Flavour::OpenMpi)), "mpirun --host b,c -n 2 ampl recover --node /run");
        assert!(line(Some(Flavour::Hydra)).starts_with("mpiexec -hosts b,c -ppn 1 -n 2 ampl"));
    }
}
