//! Synthetic runs: journals word by word, as the agent writes them, and traces made of them.

use std::fs;
use std::path::Path;

use ampl_core::config::{Config, Keep, Mechanism};
use ampl_core::draw::{kept, partners};
use ampl_core::message::{Decision, Directive, StratumDirective};
use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_trace::args::predefined_word;
use ampl_trace::cells::{Cell, Cells};
use ampl_trace::format::{Writer, rank_parts, read};
use ampl_trace::from_journal::compact;
use ampl_trace::journal::{
    BLOCK_MAGIC, BlockKind, HEADER_WORDS, MAGIC, SITE_WORDS, VERSION, flag, table_checksum, word,
};
use ampl_trace::model::WindowSummary;
use ampl_trace::record::{
    CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP, Kind, TEXT_DECISION, TEXT_RUN, WINDOW_DRAWN,
    WINDOW_INCLUSION, WINDOW_KEPT, WINDOW_PARTIAL, WINDOW_PARTNER, header, put_text,
};
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::Settings;
use ampl_trace::totals::Totals;
use ampl_trace::{RunInfo, Trace};

/// Terminals of the calls, in the order in which they are made first.
const INIT: u64 = 0;
const SEND: u64 = 1;
const POLL: u64 = 2;
const REDUCE: u64 = 3;
const FINALIZE: u64 = 4;

/// Nanoseconds (and ticks) of a window.
pub const WINDOW_NS: u64 = 10_000_000;

/// A synthetic job: every rank sends, polls in vain and reduces once in each window.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// The job file.
    pub config: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Windows of each rank.
    pub windows: u64,
    /// Ranks kept from the first directive after the start on.
    pub size: u32,
    /// Module of the call sites.
    pub module: String,
    /// Ranks that were killed in their last window.
    pub killed: Vec<u32>,
    /// Share by which time in MPI is longer than usual.
    pub slowdown: f64,
}

impl Default for Synthetic {
    fn default() -> Self {
        let (config, module) = (String::new(), "/nowhere/app".into());
        Self { config, ranks: 8, windows: 12, size: 4, module, killed: Vec::new(), slowdown: 0.0 }
    }
}

fn number(name: &str) -> u16 {
    Function::by_name(name).unwrap().0
}

fn predefined(name: &str) -> u64 {
    predefined_word(PREDEFINED.iter().position(|&(_, have)| have == name).unwrap() as u16)
}

impl Synthetic {
    /// The job's plan.
    pub fn plan(&self) -> Plan {
        Plan::new(Config::parse(&self.config).unwrap().0, self.ranks).unwrap()
    }

    /// The facts about the run that rank 0 records.
    pub fn run_info(&self) -> RunInfo {
        let mut run = RunInfo {
            ampl_version: "0.1.0".into(),
            abi: None,
            mpi_library: "Open MPI v4.1.4, package: Synthetic\nsecond line".into(),
            command: vec!["./app".into(), "in.txt".into()],
            started_ns: 1_700_000_000_000_000_000,
            ..RunInfo::default()
        };
        run.describe(&self.plan());
        run
    }

    /// Nanoseconds in MPI of a rank's window.
    pub fn mpi_ns(&self, rank: u32, window: u64) -> u64 {
        let usual =
            2_000_000 + 400_000 * u64::from(rank % 5) + 1000 * ((u64::from(rank) * 31 + window * 17) % 101);
        usual + (usual as f64 * self.slowdown) as u64
    }

    fn directive(&self, update: u64) -> Directive {
        let plan = self.plan();
        let part = |(index, group): (usize, &ampl_core::plan::GroupPlan)| {
            let (members, pinned) = (group.members.len() as u32, group.pinned.len() as u32);
            let size = if update == 0 { members } else { self.size.clamp(pinned, members) };
            let probability = match members - pinned {
                0 => 1.0,
                others => f64::from(size - pinned) / f64::from(others),
            };
            StratumDirective { group: index as u16, stratum: 0, size, probability, policy: update as u32 }
        };
        Directive {
            update,
            first_window: WindowId(update * 4),
            seed: 42,
            mechanism: plan.config.sampling.update_mechanism,
            strata: plan.groups.iter().enumerate().map(part).collect(),
            divided: Vec::new(),
        }
    }

    /// The decisions of its client.
    pub fn decisions(&self) -> Vec<Decision> {
        let plan = self.plan();
        let of_update = |update: u64| {
            let directive = self.directive(update);
            let groups = plan.groups.clone();
            directive.strata.into_iter().zip(groups).map(move |(part, group)| Decision {
                update,
                window: update * 4,
                group: group.name,
                stratum: 0,
                mechanism: Mechanism::Subset,
                population: group.members.len(),
                reported: group.members.len(),
                late: false,
                size: part.size,
                probability: part.probability,
                guide: (update > 0).then(|| "mpi.time".into()),
                policy: part.policy,
                event: Some("*".into()),
                mean: Some(2.4e6),
                variance: Some(0.01),
                error_required: Some(0.08),
                error_attained: Some(0.05),
                limit: None,
                merged_windows: 0,
                selection: None,
            })
        };
        (0..self.windows.div_ceil(4)).flat_map(of_update).collect()
    }

    /// The journal of `rank`.
    pub fn journal(&self, rank: u32) -> Vec<u8> {
        let killed = self.killed.contains(&rank);
        let plan = self.plan();
        let mut words = vec![0; HEADER_WORDS];
        let end = self.windows * WINDOW_NS;
        for (index, value) in [
            (word::MAGIC, MAGIC),
            (word::VERSION, VERSION),
            (word::RANK, rank.into()),
            (word::RANKS, self.ranks.into()),
            (word::PID, 1000 + u64::from(rank)),
            (word::TICKS_LAST, end),
            (word::NANOS_LAST, end),
            (word::FLAGS, if killed { 0 } else { flag::FINALIZED }),
            (word::OWN_TICKS, self.windows * 1000),
            (word::TABLE, table_checksum().into()),
        ] {
            words[index] = value;
        }
        let mut texts = Vec::new();
        put_text(&mut texts, &format!("node{}", rank / 4));
        put_text(&mut texts, "0-3");
        words[word::TEXTS..word::TEXTS + texts.len()].copy_from_slice(&texts);

        let mut counts = vec![0; FUNCTION_COUNT];
        for (name, calls) in [("MPI_Init", 1), ("MPI_Finalize", u64::from(!killed)), ("MPI_Wtime", 5)] {
            counts[usize::from(number(name))] = calls;
        }
        for (name, calls) in [("MPI_Send", 1), ("MPI_Iprobe", 3), ("MPI_Allreduce", 1)] {
            counts[usize::from(number(name))] = calls * self.windows;
        }
        let mut stream = Vec::new();
        let mut record = |kind, flags, function, body: &[u64]| {
            stream.push(header(kind, flags, function, body.len() + 1));
            stream.extend_from_slice(body);
        };
        let text = |text: &str| {
            let mut body = Vec::new();
            put_text(&mut body, text);
            body
        };
        if rank == 0 {
            record(Kind::Text, TEXT_RUN, 0, &text(&serde_json::to_string(&self.run_info()).unwrap()));
            for decision in self.decisions() {
                record(Kind::Text, TEXT_DECISION, 0, &text(&serde_json::to_string(&decision).unwrap()));
            }
        }
        record(Kind::Module, 0, 0, &[&[0][..], &text(&self.module)].concat());
        for (index, offset) in [(1, 0x1140), (2, 0x1180), (3, 0x11c0)] {
            record(Kind::Site, 0, 0, &[index, 0, offset]);
        }
        let (world, dest) = (predefined("MPI_COMM_WORLD"), u64::from((rank + 1) % self.ranks));
        let send = [1, 0x7000, 4, predefined("MPI_DOUBLE"), dest, 7, world];
        let poll = [2, (-1i64) as u64, (-2i64) as u64, world];
        let reduce = [3, 0x7000, 0x8000, 1, predefined("MPI_DOUBLE"), predefined("MPI_SUM"), world];
        for (function, flags, body) in [
            (GAP, 0, &[0][..]),
            (number("MPI_Send"), 0, &send),
            (number("MPI_Iprobe"), CALL_MISS, &poll),
            (number("MPI_Allreduce"), 0, &reduce),
            (number("MPI_Finalize"), CALL_NO_ARGS | CALL_UNFINISHED, &[0]),
        ] {
            record(Kind::Signature, flags, function, body);
        }
        let run = |terminal: u64, count: u64| terminal | count << 32;
        let mut log = vec![run(INIT, 1)];
        let mut sequence = 1;
        let mut spent = 0;
        let mut last_stored = false;
        for window in 0..self.windows {
            let update = window / 4;
            let directive = self.directive(update);
            let keep = kept(&plan, Rank(rank), WindowId(window), &directive);
            let neighbours = [1, self.ranks - 1].map(|step| Rank((rank + step) % self.ranks));
            let partners = if plan.config.sampling.partners { &neighbours[..] } else { &[] };
            let union = partners::kept(&plan, Rank(rank), partners, WindowId(window), &directive);
            let (start, probability) = (window * WINDOW_NS, keep.probability.to_bits());
            let mpi = self.mpi_ns(rank, window);
            let stored = match plan.config.trace.stored() {
                Keep::Off => false,
                _ => union.kept || plan.config.stores_everything(),
            };
            last_stored = stored;
            if stored {
                record(Kind::Open, 0, 0, &[window, start, probability, update, sequence]);
                record(Kind::Call, 0, 0, &[start + 10, 500, run(SEND, 1)]);
                record(Kind::Call, CALL_MISS, 0, &[start + 1000, 300, run(POLL, 3)]);
                record(Kind::Call, 0, 0, &[start + 2000, mpi - 800, run(REDUCE, 1)]);
            }
            log.extend([run(SEND, 1), run(POLL, 3), run(REDUCE, 1)]);
            sequence += 5;
            spent += mpi - 800;
            let last = window + 1 == self.windows;
            if killed && last {
                break;
            }
            let values = [WINDOW_NS, mpi, WINDOW_NS - mpi - 1000, 40, 8, 5].map(|value| value as f64);
            let cells = values.map(Cell::one);
            let cells = if plan.stores_summary(keep.kept) { &cells[..] } else { &[] };
            let weighted = union.kept && union != keep;
            let flags = [
                (stored, WINDOW_KEPT),
                (keep.kept, WINDOW_DRAWN),
                (union.kept && !keep.kept, WINDOW_PARTNER),
                (weighted, WINDOW_INCLUSION),
                (last, WINDOW_PARTIAL),
            ];
            let flags = flags.iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag);
            let mut body = vec![window, start, start + WINDOW_NS, 1000, probability, update];
            Cells::put(&mut body, cells);
            body.extend(weighted.then(|| union.probability.to_bits()));
            record(Kind::Window, flags, 0, &body);
        }
        if !killed {
            if last_stored {
                record(Kind::Call, CALL_NO_ARGS | CALL_UNFINISHED, 0, &[end, 0, run(FINALIZE, 1)]);
            }
            log.push(run(FINALIZE, 1));
        }
        let mut sites = vec![0; 8 * SITE_WORDS];
        for (index, name, calls, ticks) in [
            (1, "MPI_Send", self.windows, 500 * self.windows),
            (2, "MPI_Iprobe", 3 * self.windows, 300 * self.windows),
            (3, "MPI_Allreduce", self.windows, spent),
        ] {
            let entry = [0x55, number(name).into(), calls, ticks, 0, 1, ticks, 40, 8, 0];
            sites[index * SITE_WORDS..][..SITE_WORDS].copy_from_slice(&entry);
        }
        let log = if plan.config.trace.structure == Keep::All { log } else { Vec::new() };
        for (kind, payload) in [
            (BlockKind::Counters, counts),
            (BlockKind::Sites, sites),
            (BlockKind::Stream, stream),
            (BlockKind::Log, log),
        ] {
            let length = payload.len() as u64;
            words.extend([BLOCK_MAGIC, kind.number(), 0, length, length, 0, 0, 0]);
            words.extend(payload);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The trace file, as the client merges it.
    pub fn trace_file(&self) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let (mut structure, mut totals) = (JobStructure::new(self.ranks), Totals::default());
        for rank in 0..self.ranks {
            let mut part = compact(&self.journal(rank), Settings { error: 0.0, floor_ns: 0 }).unwrap();
            assert_eq!(part.damage, Vec::<String>::new());
            if let Some(run) = &part.run {
                writer.run(run, &part.decisions).unwrap();
            }
            if self.plan().leaves_out_summaries() {
                part.rank.leave_out_summaries();
            }
            writer.rank(&rank_parts(&part.rank)).unwrap();
            totals.join(part.totals());
            structure.join(JobStructure::of(part.structure));
        }
        writer.structure(&structure).unwrap();
        writer.totals(&totals).unwrap();
        writer.finish().unwrap()
    }

    /// The trace, read back from its file.
    pub fn trace(&self) -> Trace {
        read(&self.trace_file()).unwrap()
    }

    /// A run directory with its trace file.
    pub fn write_run(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("trace.ampl"), self.trace_file()).unwrap();
    }

    /// A run directory without one, and the journals of `ranks` in `journals`.
    pub fn write_journals(&self, dir: &Path, journals: &Path, ranks: impl IntoIterator<Item = u32>) {
        fs::create_dir_all(dir).unwrap();
        fs::create_dir_all(journals).unwrap();
        let (run, journals_text) = (self.run_info(), journals.to_string_lossy().into_owned());
        let facts = format!(
            "# Written by ampl when the job started.\nampl = {:?}\nranks = {}\nstarted_ns = {}\njournals = {journals_text:?}\n",
            run.ampl_version, run.ranks, run.started_ns
        );
        let text = format!("{facts}command = {:?}\n\n# Resolved settings.\n{}", run.command, run.config);
        fs::write(dir.join("run.toml"), text).unwrap();
        for rank in ranks {
            fs::write(journals.join(format!("rank-{rank:06}.journal")), self.journal(rank)).unwrap();
        }
    }
}

/// Sets the cell of metric `slot`; missing cells before it are empty.
pub fn put_cell(window: &mut WindowSummary, slot: usize, cell: Cell) {
    let mut cells: Vec<Cell> = window.cells.iter().collect();
    cells.resize(cells.len().max(slot + 1), Cell::default());
    cells[slot] = cell;
    window.cells = cells.into_iter().collect();
}
