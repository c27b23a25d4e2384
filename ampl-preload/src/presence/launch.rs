//! Variables that launchers set for each process they start: its rank, the number of ranks, the number of them on its
//! node, and names of the launch.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::size_of;

use super::processes::{self, Stamp};

/// Variables of a kind of launcher.
struct Family {
    size: &'static str,
    rank: &'static str,
    /// Processes of the launch on the node.
    on_node: &'static [&'static str],
}

/// Slurm's last: launchers inside of its steps pass them on.
const FAMILIES: [Family; 7] = [
    Family {
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        on_node: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
    },
    Family { size: "PMI_SIZE", rank: "PMI_RANK", on_node: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"] },
    Family {
        size: "MV2_COMM_WORLD_SIZE",
        rank: "MV2_COMM_WORLD_RANK",
        on_node: &["MV2_COMM_WORLD_LOCAL_SIZE"],
    },
    Family { size: "JSM_NAMESPACE_SIZE", rank: "JSM_NAMESPACE_RANK", on_node: &["JSM_NAMESPACE_LOCAL_SIZE"] },
    Family { size: "PALS_SIZE", rank: "PALS_RANKID", on_node: &["PALS_LOCAL_SIZE"] },
    Family { size: "FLUX_JOB_SIZE", rank: "FLUX_TASK_RANK", on_node: &[] },
    Family { size: "SLURM_STEP_NUM_TASKS", rank: "SLURM_PROCID", on_node: &[] },
];

/// Addresses of a node's PMIx server, in variables whose names depend on its version.
const SERVERS: [&str; 5] =
    ["PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"];

/// Variables by which other launchers name a launch, all of one together.
const NAMES: [&[&str]; 4] = [
    &["OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"],
    &["PALS_APID"],
    &["FLUX_JOB_ID"],
    &["SLURM_JOB_ID", "SLURM_STEP_ID"],
];

/// The environment of a process.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The processes of one launch on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnNode {
    /// All have these words in their environment, and no others have.
    Named(String),
    /// All descend from this process.
    Below(Stamp),
}

impl OnNode {
    /// A word that only these processes find.
    pub fn key(&self) -> String {
        match self {
            Self::Named(words) => hashed(words),
            Self::Below(daemon) => format!("{daemon}"),
        }
    }

    /// True where process `pid`, of that environment, is one of them.
    pub fn holds(&self, pid: u32, variables: Variables<'_>, open_mpi: bool) -> bool {
        match self {
            Self::Named(words) => named(variables, open_mpi).as_ref() == Some(words),
            Self::Below(daemon) => processes::descends(pid, daemon.pid),
        }
    }
}

/// A short word that stands for `words`, the same in every process.
pub fn hashed(words: &str) -> String {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn number(variables: Variables<'_>, name: &str) -> Option<u32> {
    variables(name)?.trim().parse().ok()
}

/// The families, the one of the program's own MPI first: launchers pass on variables of others around them.
fn families(open_mpi: bool) -> impl Iterator<Item = &'static Family> {
    let first = usize::from(!open_mpi);
    let own = &FAMILIES[first];
    std::iter::once(own)
        .chain(FAMILIES.iter().enumerate().filter(move |(at, _)| *at != first).map(|(_, of)| of))
}

/// Rank and number of ranks by the launcher; `None` where no known launcher is there.
pub fn rank_of(variables: Variables<'_>, open_mpi: bool) -> Option<(u32, Option<u32>)> {
    families(open_mpi)
        .find_map(|family| Some((number(variables, family.rank)?, number(variables, family.size))))
}

/// Number of ranks on this node; `None` where it is unknown for a world of `ranks` in which this is `rank`.
pub fn on_node(variables: Variables<'_>, open_mpi: bool, ranks: u32, rank: u32) -> Option<u32> {
    let told = families(open_mpi).filter(|family| {
        number(variables, family.rank) == Some(rank)
            && number(variables, family.size).is_none_or(|size| size == ranks)
    });
    let mut numbers = told.filter_map(|family| match family.rank {
        "SLURM_PROCID" => {
            tasks_of(&variables("SLURM_STEP_TASKS_PER_NODE")?, number(variables, "SLURM_NODEID")? as usize)
        }
        _ => family.on_node.iter().find_map(|name| number(variables, name)),
    });
    numbers.find(|number| (1..=ranks).contains(number))
}

/// Tasks of node `node` in a list of Slurm's: `2(x3),1`.
fn tasks_of(list: &str, node: usize) -> Option<u32> {
    let mut before = 0;
    for part in list.split(',') {
        let (tasks, nodes) = match part.trim().split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse().ok()?),
            None => (part.trim(), 1),
        };
        before += nodes;
        if node < before {
            return tasks.parse().ok();
        }
    }
    None
}

/// Words that name the launch on this node, if its launcher gives any.
fn named(variables: Variables<'_>, open_mpi: bool) -> Option<String> {
    let pmix = || {
        let server = SERVERS.iter().find_map(|name| variables(name))?;
        Some(format!("{} {server}", variables("PMIX_NAMESPACE")?))
    };
    // The other MPIs use PMI's variables where there are both.
    let pmi = || {
        let daemon = variables("PMI_PORT").or_else(|| variables("PMI_FD"));
        daemon.filter(|_| !open_mpi).is_some()
    };
    if pmi() {
        return variables("PMI_PORT");
    }
    pmix().or_else(|| NAMES.iter().find_map(|names| together(variables, names)))
}

fn together(variables: Variables<'_>, names: &[&str]) -> Option<String> {
    let values: Option<Vec<String>> = names.iter().map(|name| variables(name)).collect();
    values.map(|values| values.join(" "))
}

/// The processes of this one's launch on this node.
pub fn here(variables: Variables<'_>, open_mpi: bool) -> OnNode {
    if let Some(words) = named(variables, open_mpi) {
        return OnNode::Named(words);
    }
    let daemon = number(variables, "PMI_FD").filter(|_| !open_mpi).and_then(|at| peer(at as i32));
    // SAFETY: never fails.
    let parent = || unsafe { libc::getppid() }.max(0) as u32;
    OnNode::Below(Stamp::of(daemon.unwrap_or_else(parent)))
}

/// The process that made the pair of sockets with the end `at`.
fn peer(at: i32) -> Option<u32> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a place for the answer and its length.
    let asked = unsafe {
        libc::getsockopt(at, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut who).cast(), &raw mut length)
    };
    (asked == 0 && who.pid > 0).then_some(who.pid as u32)
}

/// A name of the launch that its processes on all nodes have in common; `None` where there is none.
pub fn over_nodes(variables: Variables<'_>, here: &OnNode) -> Option<String> {
    let pmix = || {
        let around = variables("OMPI_MCA_orte_hnp_uri").unwrap_or_default();
        Some(format!("{} {around}", variables("PMIX_NAMESPACE")?))
    };
    let launch = match here {
        OnNode::Named(_) => pmix().or_else(|| NAMES.iter().find_map(|names| together(variables, names))),
        OnNode::Below(daemon) => {
            control(&fs::read(format!("/proc/{}/cmdline", daemon.pid)).unwrap_or_default())
                .or_else(|| NAMES.iter().find_map(|names| together(variables, names)))
        }
    };
    let run = variables("AMPL_DIR").filter(|run| !run.is_empty());
    match (launch, run) {
        (None, None) => None,
        (launch, run) => Some(format!("{} {}", launch.unwrap_or_default(), run.unwrap_or_default())),
    }
}

/// Address of the launcher of a proxy of Hydra's with that command line, and the number of its group of processes.
fn control(command: &[u8]) -> Option<String> {
    let words: Vec<&[u8]> = command.split(|&byte| byte == 0).collect();
    let behind = |option: &[u8]| {
        let at = words.iter().position(|word| *word == option)?;
        Some(String::from_utf8_lossy(words.get(at + 1)?).into_owned())
    };
    Some(format!("{} {}", behind(b"--control-port")?, behind(b"--pgid").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned())
    }

    #[test]
    fn launchers_say_how_many_ranks_are_on_the_node() {
        let open_mpi = environment(&[
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
            ("PMIX_NAMESPACE", "77"),
            ("PMIX_SERVER_URI2", "77.0;tcp4://127.0.0.1:1"),
        ]);
        assert_eq!(rank_of(&open_mpi, true), Some((5, Some(8))));
        assert_eq!(on_node(&open_mpi, true, 8, 5), Some(4));
        assert_eq!(here(&open_mpi, true), OnNode::Named("77 77.0;tcp4://127.0.0.1:1".into()));
        // Another world than the launcher's: its values are of no use.
        assert_eq!(on_node(&open_mpi, true, 2, 5), None);
        assert_eq!(on_node(&open_mpi, true, 8, 1), None);
        let hydra = environment(&[("PMI_SIZE", "3"), ("PMI_RANK", "2"), ("MPI_LOCALNRANKS", "3")]);
        assert_eq!((rank_of(&hydra, false), on_node(&hydra, false, 3, 2)), (Some((2, Some(3))), Some(3)));
        let cray = environment(&[("PMI_SIZE", "3"), ("PMI_RANK", "2"), ("PMI_LOCAL_SIZE", "1")]);
        assert_eq!(on_node(&cray, false, 3, 2), Some(1));
        let pals = environment(&[("PALS_RANKID", "2"), ("PALS_LOCAL_SIZE", "2"), ("PALS_APID", "x")]);
        assert_eq!((rank_of(&pals, false), on_node(&pals, false, 4, 2)), (Some((2, None)), Some(2)));
        assert_eq!(here(&pals, false), OnNode::Named("x".into()));
        assert_eq!(on_node(&environment(&[]), true, 4, 1), None);
    }

    #[test]
    fn a_launcher_inside_of_another_is_believed() {
        let both = environment(&[
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("PMIX_NAMESPACE", "77"),
            ("PMIX_SERVER_URI2", "u"),
            ("PMI_SIZE", "4"),
            ("PMI_RANK", "3"),
            ("PMI_PORT", "n:1"),
            ("MPI_LOCALNRANKS", "3"),
        ]);
        assert_eq!((rank_of(&both, false), on_node(&both, false, 4, 3)), (Some((3, Some(4))), Some(3)));
        assert_eq!((rank_of(&both, true), on_node(&both, true, 2, 1)), (Some((1, Some(2))), Some(2)));
        assert_eq!(here(&both, false), OnNode::Named("n:1".into()));
        assert_eq!(here(&both, true), OnNode::Named("77 u".into()));
    }

    #[test]
    fn slurm_lists_tasks_node_by_node() {
        for (node, tasks) in [(0, Some(2)), (2, Some(2)), (3, Some(1)), (4, Some(16)), (5, None)] {
            assert_eq!(tasks_of("2(x3),1,16", node), tasks, "{node}");
        }
        assert_eq!((tasks_of("", 0), tasks_of("2(x", 0)), (None, None));
        let step = environment(&[
            ("SLURM_STEP_NUM_TASKS", "7"),
            ("SLURM_PROCID", "6"),
            ("SLURM_NODEID", "3"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x3),1"),
            ("SLURM_JOB_ID", "9"),
            ("SLURM_STEP_ID", "0"),
        ]);
        assert_eq!(on_node(&step, true, 7, 6), Some(1));
        let here = here(&step, true);
        assert_eq!(here, OnNode::Named("9 0".into()));
        assert_eq!(over_nodes(&step, &here), Some("9 0 ".into()));
    }

    #[test]
    fn a_launch_has_one_name_on_all_nodes() {
        let command =
            "/usr/bin/hydra_pmi_proxy --control-port one:34195 --pgid 1 --proxy-id 2 ".replace(' ', "\0");
        assert_eq!(control(command.as_bytes()), Some("one:34195 1".into()));
        assert_eq!(control(b"/bin/sh\0"), None);
        let of = |server: &'static str| {
            move |name: &str| match name {
                "PMIX_NAMESPACE" => Some("j@1".to_owned()),
                "PMIX_SERVER_URI4" => Some(server.to_owned()),
                _ => None,
            }
        };
        let (one, two) = (of("a"), of("b"));
        let (first, second) = (here(&one, true), here(&two, true));
        assert_ne!(first.key(), second.key());
        assert_eq!(over_nodes(&one, &first), over_nodes(&two, &second));
    }
}
