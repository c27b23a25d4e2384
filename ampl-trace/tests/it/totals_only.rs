//! Bytes of a trace that has counts and totals only, as `configs/always.toml` asks: at most 64 KiB and 4 bytes a rank,
//! beside totals of functions and facts about the job.

use ampl_core::config::Config;
use ampl_core::mpi::Function;
use ampl_core::plan::Plan;
use ampl_trace::format::{TraceFile, Writer, rank_parts, round_facts, round_gaps};
use ampl_trace::gaps::{Gaps, Reason, Span, ThreadGaps, Unrecorded};
use ampl_trace::grammar::Builder;
use ampl_trace::model::{Aggregate, ClockFit, Process, RankTrace, RunInfo, Site};
use ampl_trace::structure::{JobStructure, RankStructure, ThreadStructure};
use ampl_trace::totals::Totals;

/// Functions of each rank, and how often it calls them at least.
const FUNCTIONS: [(&str, u64); 6] = [
    ("MPI_Init", 1),
    ("MPI_Isend", 80_000),
    ("MPI_Irecv", 80_000),
    ("MPI_Waitall", 20_000),
    ("MPI_Allreduce", 5_000),
    ("MPI_Finalize", 1),
];
const RANKS_OF_HOST: u32 = 64;
const SECOND: u64 = 1_000_000_000;

/// Draws numbers, the same ones in each run.
struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let folded = self.0 ^ self.0 >> 33;
        folded.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 11
    }

    /// A number from 0 to `below`.
    fn below(&mut self, below: u64) -> u64 {
        self.bits() % below.max(1)
    }

    /// About `base`, with a standard deviation of that share of it.
    fn about(&mut self, base: u64, share: f64) -> u64 {
        let sum: f64 = (0..12).map(|_| self.bits() as f64 / (1u64 << 53) as f64).sum();
        (base as f64 * (1.0 + share * (sum - 6.0))).max(0.0) as u64
    }
}

/// A rank of a job of ten minutes on several hosts: each number differs from rank to rank.
fn rank(rank: u32, plan: &Plan, noise: &mut Noise) -> (RankTrace, Totals) {
    let number = |name| Function::by_name(name).expect("MPI has it").0;
    let mut calls: Vec<(u16, u64)> = FUNCTIONS
        .iter()
        .map(|&(name, calls)| (number(name), if calls > 1 { noise.about(calls, 0.1) } else { 1 }))
        .collect();
    calls.sort_unstable();
    let (host, within) = (rank / RANKS_OF_HOST, rank % RANKS_OF_HOST);
    let begin = 20_000_000 + noise.below(300_000_000);
    let elapsed = 600 * SECOND + noise.below(200_000_000);
    let clock = |noise: &mut Noise| ClockFit {
        offset_ns: i64::from(host) * 7_919_191_919 + noise.below(9_000) as i64,
        error_ns: 8_000 + noise.below(9_000),
        drift_ppm: Some(f64::from(host % 13) + noise.below(1_000) as f64 / 1e5),
    };
    let mut process = Process {
        rank,
        host: format!("node{host:05}"),
        cpus: within.to_string(),
        program: String::new(),
        pid: 40_000 + host * 7_777 % 60_000 + within * 3 + noise.below(3) as u32,
        finalized: true,
        own_ns: noise.about(3 * SECOND, 0.1),
        begin_ns: noise.about(9_000_000, 0.1),
        end_ns: noise.about(4_000_000, 0.1),
        end_wait_ns: noise.about(700_000_000, 0.2),
        processor_ns: noise.about(590 * SECOND, 0.01),
        processors: RANKS_OF_HOST.into(),
        switches: Some(noise.about(300, 0.1)),
        elapsed_ns: elapsed,
        windows: 1,
        clock: (host > 0).then(|| clock(noise)),
        calls: calls.clone(),
        ..Process::default()
    };
    let (mut kinds, mut sequence) = (Vec::new(), Builder::new());
    for (site, &(function, calls)) in (1..).zip(&calls) {
        kinds.push(Unrecorded { function, site, reason: Reason::Structure });
        sequence.push(site - 1, calls);
    }
    let span = Span {
        seq: 0,
        from_ns: begin as i64,
        until_ns: (elapsed - noise.below(3_000_000)) as i64,
        reasons: Reason::Structure.bit(),
    };
    let thread = ThreadGaps { thread: 0, kinds, sequence: sequence.grammar(), spans: vec![span], rest: None };
    let entries: Vec<Aggregate> = (0..)
        .zip(&calls)
        .map(|(site, &(function, calls))| {
            let time_ns = noise.about(calls * 9_000, 0.1) as f64;
            let (min_ns, max_ns, time_sq) = (300.0, 1e6, time_ns * 9e3);
            Aggregate {
                function,
                site: Some(site),
                calls,
                time_ns,
                time_sq,
                min_ns,
                max_ns,
                sent: 8 * calls,
                received: 0,
            }
        })
        .collect();
    let totals = Totals::of(rank, &["/bin/app".into()], &sites(), &entries);
    let mut rank = RankTrace { gaps: Gaps { threads: vec![thread] }, ..RankTrace::default() };
    rank.process.elapsed_ns = elapsed;
    round_gaps(plan, &mut rank);
    round_facts(plan, &mut process);
    rank.process = process;
    (rank, totals)
}

fn sites() -> Vec<Site> {
    (0..FUNCTIONS.len() as u64)
        .map(|site| Site { module: 0, offset: 0x40 * site, ..Site::default() })
        .collect()
}

#[test]
fn counts_and_totals_of_many_ranks_take_few_bytes() {
    let recipe = include_str!("../../../configs/always.toml");
    let (config, _) = Config::parse(recipe).expect("the recipe is sound");
    for ranks in [5, 1_000, 10_000, 100_000] {
        let plan = Plan::new(config.clone(), ranks).expect("a job");
        let (mut noise, mut writer) = (Noise(1), Writer::new(Vec::new()).unwrap());
        let (mut totals, mut structure, mut expected) =
            (Totals::default(), JobStructure::new(ranks), Vec::new());
        for number in 0..ranks {
            let (rank, own) = rank(number, &plan, &mut noise);
            totals.join(own);
            structure.join(JobStructure::of(RankStructure {
                rank: number,
                modules: vec!["/bin/app".into()],
                sites: sites(),
                threads: vec![ThreadStructure {
                    thread: 0,
                    signatures: Vec::new(),
                    grammar: Builder::new().grammar(),
                }],
                comms: Vec::new(),
            }));
            expected.push(rank);
        }
        writer.structure(&structure).unwrap();
        writer.totals(&totals).unwrap();
        writer.run(&RunInfo { ranks, ..RunInfo::default() }, &[]).unwrap();
        for rank in &expected {
            writer.rank(&rank_parts(rank)).unwrap();
        }
        let file = TraceFile::new(writer.finish().unwrap()).unwrap();
        let sizes = file.sizes();
        eprintln!("{ranks} ranks: {sizes:?}");
        assert!(sizes.aggregates <= 4 * u64::from(ranks) * FUNCTIONS.len() as u64 + 4096, "{sizes:?}");
        assert!(sizes.total - sizes.aggregates <= (64 << 10) + 4 * u64::from(ranks), "{ranks}: {sizes:?}");
        // By single ranks, and as a whole: calls are exact.
        for number in [0, ranks / 2, ranks - 1] {
            let (found, damage) = file.rank(number).expect("it is there");
            let own = &expected[number as usize];
            assert_eq!((&found.process, &found.gaps, damage), (&own.process, &own.gaps, vec![]));
        }
        let trace = file.into_trace().unwrap();
        assert!(trace.complete, "{:?}", trace.damage);
        for (found, own) in trace.ranks.iter().zip(&expected) {
            assert_eq!((&found.process, &found.gaps), (&own.process, &own.gaps));
        }
    }
}
