//! Synthetic runs: ranks whose calls are given one by one, as an agent would have recorded them.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use ampl_core::config::Config;
use ampl_core::mpi::{Function, ObjectKind, predefined_index};
use ampl_core::plan::Plan;
use ampl_core::value::Value;
use ampl_trace::args::predefined_word;
use ampl_trace::decode::Call;
use ampl_trace::format::{Writer, rank_parts};
use ampl_trace::grammar::Builder;
use ampl_trace::model::{Process, Site};
use ampl_trace::record::{CALL_MISS, GAP};
use ampl_trace::structure::{Comm, JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::{RankTrace, RunInfo};

/// A rank while it makes calls.
pub struct Caller {
    rank: u32,
    comms: Vec<Comm>,
    sites: Vec<Site>,
    signatures: Vec<Signature>,
    sequence: Builder,
}

/// The word of a predefined object.
pub fn predefined(kind: ObjectKind, name: &str) -> u64 {
    predefined_word(predefined_index(kind, name).unwrap_or_else(|| panic!("{name} is predefined")))
}

/// The word of `MPI_COMM_WORLD`.
pub fn world() -> u64 {
    predefined(ObjectKind::Comm, "MPI_COMM_WORLD")
}

/// A decoded call of that function, without a time.
pub fn decoded(function: &str, args: Vec<(&'static str, Value)>, out: Vec<(&'static str, Value)>) -> Call {
    Call {
        seq: 0,
        thread: 0,
        function: Function::by_name(function).expect("a function of MPI"),
        args,
        out,
        count: 1,
        code: 0,
        site: None,
        timed: None,
        terminal: 0,
    }
}

impl Caller {
    /// A rank of a world of `size` ranks.
    pub fn new(rank: u32, size: u32) -> Self {
        Self {
            rank,
            comms: vec![Comm { word: world(), size: size.into(), rank: rank.into() }],
            sites: Vec::new(),
            signatures: Vec::new(),
            sequence: Builder::new(),
        }
    }

    /// Its rank in the world.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Adds a communicator that its calls name.
    pub fn comm(&mut self, word: u64, size: u32, rank: u32) {
        self.comms.push(Comm { word, size: size.into(), rank: rank.into() });
    }

    /// Calls `function` with these words from line `line`; equal calls are one terminal. Returns the terminal.
    pub fn call(&mut self, function: &str, line: u64, words: &[u64]) -> u32 {
        let function = Function::by_name(function).unwrap_or_else(|| panic!("no function {function}")).0;
        self.signature(function, 0, line, words)
    }

    /// Polls by `function` in vain, likewise.
    pub fn poll(&mut self, function: &str, line: u64, words: &[u64]) -> u32 {
        let function = Function::by_name(function).unwrap_or_else(|| panic!("no function {function}")).0;
        self.signature(function, CALL_MISS, line, words)
    }

    /// True where the calls of a terminal are polls in vain.
    pub fn polls(&self, terminal: u32) -> bool {
        self.signatures[terminal as usize].flags & CALL_MISS != 0
    }

    /// Calls that were counted and not recorded.
    pub fn gap(&mut self) {
        self.signature(GAP, 0, 0, &[]);
    }

    fn signature(&mut self, function: u16, flags: u8, line: u64, words: &[u64]) -> u32 {
        let site = match line {
            0 => 0,
            _ => {
                let site = Site { module: 0, offset: line, caller: 0 };
                let known = self.sites.iter().position(|known| *known == site);
                known.unwrap_or_else(|| {
                    self.sites.push(site);
                    self.sites.len() - 1
                }) as u32
                    + 1
            }
        };
        let signature = Signature { function, flags, site, path: 0, words: words.to_vec() };
        let known = self.signatures.iter().position(|known| *known == signature);
        let terminal = known.unwrap_or_else(|| {
            self.signatures.push(signature);
            self.signatures.len() - 1
        }) as u32;
        self.sequence.push(terminal, 1);
        terminal
    }

    /// `MPI_Send` of so many doubles; negative numbers of ranks are MPI's constants.
    pub fn send(&mut self, line: u64, dest: i64, count: u64, comm: u64) {
        let double = predefined(ObjectKind::Type, "MPI_DOUBLE");
        self.call("MPI_Send", line, &[0, count, double, dest as u64, 7, comm]);
    }

    /// `MPI_Recv` of so many doubles, which come from that rank.
    pub fn receive(&mut self, line: u64, source: i64, told: i64, count: u64, comm: u64) {
        let double = predefined(ObjectKind::Type, "MPI_DOUBLE");
        let status = ampl_trace::args::status_word(told as i32, 7);
        self.call("MPI_Recv", line, &[0, count, double, source as u64, 7, comm, status]);
    }

    /// `MPI_Comm_split` of the world; gives the communicator of that word.
    pub fn split(&mut self, color: u64, key: u64, word: u64, (size, rank): (u32, u32)) {
        self.comm(word, size, rank);
        self.call("MPI_Comm_split", 1, &[world(), color, key, word]);
    }

    /// Its calls.
    pub fn finish(self) -> RankStructure {
        let thread =
            ThreadStructure { thread: 0, signatures: self.signatures, grammar: self.sequence.into_grammar() };
        RankStructure {
            rank: self.rank,
            threads: vec![thread],
            modules: vec!["/synthetic/app".into()],
            sites: self.sites,
            comms: self.comms,
        }
    }
}

/// The structure of a job of `size` ranks whose calls `program` makes, as it is read from a trace.
pub fn structure(size: u32, program: impl Fn(&mut Caller)) -> JobStructure {
    let mut structure = JobStructure::new(size);
    for rank in 0..size {
        let mut caller = Caller::new(rank, size);
        program(&mut caller);
        structure.join(JobStructure::of(caller.finish()));
    }
    JobStructure::decode(&structure.encode()).expect("what was encoded is decoded")
}

/// Facts about the processes of a job: every rank reached the end, on the host that `host` names.
pub fn processes(structure: &JobStructure, host: impl Fn(u32) -> String) -> Vec<Process> {
    let process = |rank: u32| {
        let mut calls: std::collections::BTreeMap<u16, u64> = std::collections::BTreeMap::new();
        for thread in structure.rank(rank).map(|rank| rank.threads).unwrap_or_default() {
            for (terminal, count) in thread.grammar.totals() {
                *calls.entry(thread.signatures[terminal as usize].function).or_default() += count;
            }
        }
        let calls = calls.into_iter().filter(|(function, _)| *function != ampl_trace::record::GAP).collect();
        Process { rank, host: host(rank), pid: 1000 + rank, finalized: true, calls, ..Process::default() }
    };
    let mut ranks: Vec<u32> = structure.ranks().collect();
    ranks.sort_unstable();
    ranks.into_iter().map(process).collect()
}

/// Facts about the run.
pub fn info(size: u32) -> RunInfo {
    let mut run = RunInfo { mpi_library: "synthetic".into(), started_ns: 1, ..RunInfo::default() };
    if let Ok(plan) = Plan::new(Config::default(), size) {
        run.describe(&plan);
    }
    run.command = vec!["./synthetic".into()];
    run
}

/// Writes a run directory of such a job.
///
/// # Errors
/// Errors of writing files.
pub fn write(directory: &Path, structure: &JobStructure, host: impl Fn(u32) -> String) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let file = File::create(directory.join("trace.ampl"))?;
    let mut writer = Writer::new(BufWriter::new(file)).map_err(io::Error::other)?;
    writer.structure(structure).map_err(io::Error::other)?;
    for process in processes(structure, host) {
        let one = RankTrace { process, ..RankTrace::default() };
        writer.rank(&rank_parts(&one)).map_err(io::Error::other)?;
    }
    writer.run(&info(structure.rank_count()), &[]).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)?;
    Ok(())
}
