//! The record of a run, for an archive of all jobs.

use std::collections::BTreeSet;

use ampl_core::config::{Arguments, Config};
use ampl_core::program::{names, program_of};
use ampl_trace::Trace;
use ampl_trace::metadata::cut_to;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde::{Deserialize, Deserializer, Serialize};

use crate::calls;
use crate::comparison::{FactKind, Identity, facts};
use crate::efficiency::{self, Basis};
use crate::overhead::Overhead;

/// Version of the fields below.
pub const SCHEMA: u32 = 1;
/// Call sites of a record.
const SITES: usize = 10;
/// Bytes of a text of a record.
const LONGEST: usize = 160;
/// Hosts, and words of the arguments, that a record names.
const NAMED: usize = 32;

/// Facts that the run itself does not have.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The run directory.
    pub run: String,
    /// Name of the user.
    pub user: String,
    /// The scheduler's job, or the launcher's process.
    pub job: String,
}

/// The record of a run. Unknown fields of later versions are left out when it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Version of the fields.
    pub schema: u32,
    /// Equal in runs of the same programs, ranks, arguments and input files.
    pub key: String,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// Name of the user.
    pub user: String,
    /// The scheduler's job, or the launcher's process.
    pub job: String,
    /// The run directory.
    pub run: String,
    /// The first rank's program.
    pub app: String,
    /// Programs; of several, with their ranks.
    pub programs: Vec<String>,
    /// Arguments of rank 0's program.
    pub arguments: Vec<String>,
    /// True where the run keeps its arguments to itself (`output.arguments`), so that `key` is of any.
    pub arguments_private: bool,
    /// Ranks of the job.
    pub ranks: u32,
    /// Names of hosts, the first ones.
    pub hosts: Vec<String>,
    /// Number of hosts.
    pub host_count: u64,
    /// Time of the longest rank from `MPI_Init` to `MPI_Finalize`.
    pub elapsed_ns: u64,
    /// Calls of all ranks.
    pub calls: u64,
    /// Efficiencies of the run.
    pub efficiency: Efficiency,
    /// The dearest call sites, most time first.
    pub sites: Vec<Site>,
    /// Cost of ampl.
    pub cost: Cost,
    /// Parts that are missing.
    pub completeness: Completeness,
    /// Facts about what ran and where.
    pub metadata: Vec<Fact>,
    /// Facts, sites, hosts and words that were left out for want of room.
    pub left_out: u64,
}

/// Efficiencies of a run; those that too little was measured for are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Efficiency {
    /// Share of the ranks' time that computes.
    pub parallel: Option<f64>,
    /// Mean over greatest compute time.
    pub load_balance: Option<f64>,
    /// Greatest compute time over elapsed time.
    pub communication: Option<f64>,
    /// Share of the ranks' time that they rest on.
    pub coverage: f64,
    /// Data that they rest on.
    #[serde(deserialize_with = "known_basis")]
    pub basis: Option<Basis>,
}

/// The basis; `None` where there is none, or one of a later version.
fn known_basis<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Basis>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    let word = word.map(IntoDeserializer::<ValueError>::into_deserializer);
    Ok(word.and_then(|word| Basis::deserialize(word).ok()))
}

/// A call site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Site {
    /// The function.
    pub function: Option<String>,
    /// The place of the calls.
    pub site: Option<String>,
    /// Calls of all ranks.
    pub calls: u64,
    /// Time in them.
    pub ns: u64,
    /// Share of the time in MPI.
    pub share: Option<f64>,
    /// Share of the ranks' time in which calls were measured.
    pub coverage: f64,
}

/// Cost of ampl.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Its processor time.
    pub agent_ns: u64,
    /// The same as a share of the ranks' run time.
    pub share: Option<f64>,
    /// The same as a share of the job's processor time.
    pub processor_share: Option<f64>,
    /// Bytes of the trace.
    pub trace_bytes: u64,
}

/// Parts of a run that are missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Completeness {
    /// True where every rank came to the end.
    pub complete: bool,
    /// Ranks that left something.
    pub reported: u64,
    /// Failures of agents.
    pub agent_failures: u64,
    /// Damaged parts of the trace.
    pub damaged: u64,
}

/// A fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fact {
    /// `program`, `mpi_library`, `module`, …, as in comparisons of runs.
    pub kind: String,
    /// Its name; empty for the only one of its kind.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Record {
    /// The record of `trace`.
    pub fn of(trace: &Trace, origin: Origin) -> Self {
        let identity = Identity::of(trace);
        let facts = facts(trace);
        let inputs = facts.iter().filter(|((kind, _), _)| *kind == FactKind::Input);
        let inputs: Vec<String> = inputs.map(|((_, name), value)| format!("{name} {value}")).collect();
        let row = efficiency::rows(trace).into_iter().find(|row| row.window.is_none());
        let calls = trace.calls();
        let overhead = Overhead::of(trace, calls);
        let hosts: BTreeSet<&str> = trace.ranks.iter().map(|rank| rank.process.host.as_str()).collect();
        let program = program_of(&trace.run.command);
        let app = names(&[program.as_str()]).first().copied().unwrap_or_default().to_owned();
        let table = calls::table(trace);
        let dear = table.rows.iter().filter(|row| row.ns > 0).take(SITES);
        let kept = facts.iter().filter(|((kind, _), _)| {
            !matches!(kind, FactKind::Setting | FactKind::Nodes | FactKind::Binding | FactKind::Library)
        });
        let mut record = Self {
            schema: SCHEMA,
            key: key(&identity, &inputs),
            started_ns: trace.run.started_ns,
            user: cut(&origin.user),
            job: cut(&origin.job),
            run: cut(&origin.run),
            app: cut(&app),
            programs: identity.programs.iter().map(|text| cut(text)).collect(),
            arguments: identity.arguments.iter().map(|text| cut(text)).collect(),
            arguments_private: Config::parse(&trace.run.config)
                .is_ok_and(|(config, _)| config.output.arguments != Arguments::All),
            ranks: trace.run.ranks,
            host_count: hosts.len() as u64,
            hosts: hosts.into_iter().take(NAMED).map(cut).collect(),
            elapsed_ns: trace.elapsed_ns(),
            calls,
            efficiency: row
                .map(|row| Efficiency {
                    parallel: row.parallel,
                    load_balance: row.load_balance,
                    communication: row.communication,
                    coverage: row.coverage,
                    basis: Some(row.basis),
                })
                .unwrap_or_default(),
            sites: dear
                .map(|row| Site {
                    function: row.function.map(str::to_owned),
                    site: row.site.as_deref().map(cut),
                    calls: row.calls,
                    ns: row.ns,
                    share: row.share,
                    coverage: row.coverage,
                })
                .collect(),
            cost: Cost {
                agent_ns: overhead.agent_ns,
                share: overhead.share,
                processor_share: overhead.own.processor_share,
                trace_bytes: trace.sizes.total,
            },
            completeness: Completeness {
                complete: trace.complete,
                reported: trace.ranks.len() as u64,
                agent_failures: trace.ranks.iter().map(|rank| rank.process.agent_failures).sum(),
                damaged: trace.damage.len() as u64,
            },
            metadata: kept
                .map(|((kind, name), value)| Fact {
                    kind: kind.name().to_owned(),
                    name: cut(name),
                    value: cut(value),
                })
                .collect(),
            left_out: 0,
        };
        record.left_out += record.host_count - record.hosts.len() as u64;
        for words in [&mut record.arguments, &mut record.programs] {
            record.left_out += words.len().saturating_sub(NAMED) as u64;
            words.truncate(NAMED);
        }
        record
    }

    /// Leaves out the least important item, and counts it; false where nothing is left to leave out.
    pub fn shorten(&mut self) -> bool {
        let Self { metadata, hosts, arguments, programs, sites, .. } = self;
        let gone = metadata.pop().is_some()
            || hosts.pop().is_some()
            || arguments.pop().is_some()
            || (programs.len() > 1 && programs.pop().is_some())
            || sites.pop().is_some();
        self.left_out += u64::from(gone);
        gone
    }
}

/// Digits that are equal for equal programs, ranks, arguments and inputs (FNV-1a, 64 bits).
fn key(identity: &Identity, inputs: &[String]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let ranks = [identity.ranks.to_string()];
    for part in [&ranks[..], &identity.programs, &identity.arguments, inputs] {
        // Two bytes that no text has keep words and lists apart.
        let words = part.iter().flat_map(|word| word.bytes().chain([0xff]));
        for byte in words.chain([0xfe]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// `text`, cut at the end of a character.
fn cut(text: &str) -> String {
    cut_to(text, LONGEST).to_owned()
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;
    use ampl_trace::metadata::FileFacts;

    use super::*;

    fn run(command: &[&str], ranks: u32, input: Option<&str>) -> Trace {
        let mut trace = Trace { complete: true, ..Trace::default() };
        trace.run.command = command.iter().map(|&word| word.to_owned()).collect();
        trace.run.ranks = ranks;
        trace.run.metadata.inputs = input.map(|sha256| {
            vec![FileFacts { path: "in".into(), bytes: 3, sha256: Some(sha256.into()), build_id: None }]
        });
        for number in 0..ranks {
            let mut rank = RankTrace::default();
            rank.process.rank = number;
            rank.process.host = format!("node{:03}", number / 2);
            rank.process.elapsed_ns = 1000 + u64::from(number);
            trace.ranks.push(rank);
        }
        trace
    }

    #[test]
    fn equal_jobs_have_equal_keys() {
        let of = |trace: &Trace| Record::of(trace, Origin::default()).key;
        let base = of(&run(&["/opt/a/app", "-n", "5"], 4, Some("ab")));
        assert_eq!(of(&run(&["/data/u/app", "-n", "5"], 4, Some("ab"))), base);
        for other in [
            run(&["/opt/a/app", "-n", "6"], 4, Some("ab")),
            run(&["/opt/a/app", "-n5"], 4, Some("ab")),
            run(&["/opt/a/apt", "-n", "5"], 4, Some("ab")),
            run(&["/opt/a/app", "-n", "5"], 5, Some("ab")),
            run(&["/opt/a/app", "-n", "5"], 4, Some("cd")),
            run(&["/opt/a/app", "-n", "5"], 4, None),
        ] {
            assert_ne!(of(&other), base, "{:?}", other.run.command);
        }
    }

    #[test]
    fn a_record_gets_shorter_until_only_numbers_are_left() {
        let words: Vec<String> = (0..100).map(|at| format!("{at}{}", "é".repeat(300))).collect();
        let command: Vec<&str> = std::iter::once("app").chain(words.iter().map(String::as_str)).collect();
        let mut record = Record::of(&run(&command, 200, None), Origin::default());
        assert_eq!((record.ranks, record.host_count, record.elapsed_ns), (200, 100, 1199));
        assert!(record.arguments.iter().all(|word| word.len() <= LONGEST));
        // 68 of the words, 68 of the hosts.
        assert_eq!((record.left_out, record.arguments.len(), record.hosts.len()), (136, NAMED, NAMED));
        let items = (record.metadata.len() + 2 * NAMED + record.sites.len()) as u64;
        while record.shorten() {}
        assert_eq!((record.left_out, record.programs.len()), (136 + items, 1));
        assert!(!record.completeness.complete || record.completeness.reported == 200);
    }
}
