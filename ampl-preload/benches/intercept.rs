//! Cost of interception: nanoseconds of thread CPU time per call over the bare library, by what the agent does with the
//! call.
//!
//! Bare, disabled and observed runs of one small C program follow each other; `kept` and `dropped` are two ranks of one
//! run, distinguished by the same draw that the agents make. Loops of array calls are reported per request. Minima are
//! what an idle processor takes; on a busy one compare those only.
//!
//! With the argument `instructions`: instructions per call as valgrind counts them, which nothing else
//! on the machine disturbs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ampl_client::Policy;
use ampl_core::config::Config;
use ampl_core::draw::kept;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

/// Minimum and median, nanoseconds.
type Cost = (f64, f64);

// Nothing but calls: without a higher limit the agent would step down, and cost less than in programs.
const STRUCTURE: &str =
    "[window]\nmarker = \"period:3600s\"\n[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = 0.99\n";
const KEPT: &str =
    "[window]\nmarker = \"period:3600s\"\n[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.99\n";
const ONE_OF_TWO: &str = "[window]\nmarker = \"period:3600s\"\n[agent]\nmax_overhead = 0.99\n\
     [[group]]\nname = \"two\"\nmembers = \"0-1\"\nsample_size = 1\n";

/// A loop of the program: its name, the function that is it, how many calls are enough to count
/// instructions, and limits of a kept call's cost.
struct Loop {
    name: &'static str,
    function: &'static str,
    calls: u32,
    target: &'static str,
}

const LOOPS: [Loop; 11] = [
    Loop { name: "MPI_Comm_rank", function: "local", calls: 20_000, target: "" },
    Loop { name: "one-signature", function: "one_signature", calls: 40_000, target: "60" },
    Loop { name: "MPI_Iprobe", function: "polls", calls: 20_000, target: "60" },
    Loop { name: "MPI_Test", function: "tests", calls: 20_000, target: "60" },
    Loop { name: "Isend,Wait", function: "request", calls: 20_000, target: "120 + 5" },
    Loop { name: "nested", function: "nested", calls: 40_000, target: "120" },
    Loop { name: "Waitall(1)", function: "array_1", calls: 20_000, target: "120 + 5" },
    Loop { name: "Waitall(8)", function: "array_8", calls: 10_000, target: "120/8 + 5" },
    Loop { name: "Waitall(64)", function: "array_64", calls: 3_000, target: "120/64 + 5" },
    Loop { name: "1000-tags", function: "tags", calls: 40_000, target: "3 x one" },
    Loop { name: "random-tags", function: "symbols", calls: 200_000, target: "400" },
];

fn main() {
    let Some((compiler, launcher)) = mpi() else {
        eprintln!("intercept: no MPI found (mpicc and mpirun): run `cargo xtask setup`");
        std::process::exit(1);
    };
    let library = library();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("intercept");
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch).expect("a scratch directory in target");
    let program = scratch.join("intercept");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/intercept.c");
    let compiled = Command::new(compiler).arg("-O2").arg("-o").args([&program, &source]).status();
    assert!(compiled.is_ok_and(|status| status.success()), "{compiler} cannot compile {}", source.display());

    let job = Job { launcher, library: &library, program: &program, scratch: &scratch };
    if std::env::args().any(|argument| argument == "instructions") {
        instructions(&job);
    } else {
        nanoseconds(&job);
    }
}

fn nanoseconds(job: &Job<'_>) {
    let bare = job.run("bare", None, None);
    let disabled = job.run("disabled", Some(""), Some(("AMPL_DISABLE", "1")));
    let structure = job.run("structure", Some(STRUCTURE), None);
    let sampled = job.run("sampled", Some(ONE_OF_TWO), None);
    let drawn = drawn_rank();

    let over = |state: &BTreeMap<(String, u32), Cost>, name: &str, rank: u32| {
        let (base, cost) = (bare[&(name.to_owned(), rank)], state[&(name.to_owned(), rank)]);
        format!("{:>7.1} {:>7.1}", cost.0 - base.0, cost.1 - base.1)
    };
    println!(
        "{:<16} {:>15} {:>15} {:>15} {:>15} {:>15}  kept: at most",
        "ns per call", "bare", "+disabled", "+structure", "+dropped", "+kept"
    );
    println!("{:<16} {}", "", "    min  median ".repeat(5));
    let clock = bare[&("two-clock-reads".to_owned(), 0)];
    println!("{:<16} {:>7.1} {:>7.1}   (what any observer pays)", "two clock reads", clock.0, clock.1);
    for Loop { name, target, .. } in LOOPS {
        let (minimum, median) = bare[&(name.to_owned(), 0)];
        println!(
            "{name:<16} {minimum:>7.1} {median:>7.1} {} {} {} {}  {target}",
            over(&disabled, name, 0),
            over(&structure, name, 0),
            over(&sampled, name, 1 - drawn),
            over(&sampled, name, drawn),
        );
    }
    // Cost of one more request, whatever the call itself does.
    let slope = |state: &BTreeMap<(String, u32), Cost>, rank: u32| {
        let at = |name: &str| state[&(name.to_owned(), rank)].0 - bare[&(name.to_owned(), rank)].0;
        (64.0 * at("Waitall(64)") - 8.0 * at("Waitall(8)")) / 56.0
    };
    println!(
        "one more request: +structure {:.1}, +kept {:.1}; at most 5",
        slope(&structure, 0),
        slope(&sampled, drawn)
    );
}

fn instructions(job: &Job<'_>) {
    println!("{:<16} {:>8} {:>11} {:>8}", "instructions", "bare", "+structure", "+kept");
    for row in &LOOPS {
        let bare = job.instructions(row, "bare", None);
        let structure = job.instructions(row, "structure", Some(STRUCTURE));
        let kept = job.instructions(row, "kept", Some(KEPT));
        println!("{:<16} {bare:>8.0} {:>11.0} {:>8.0}", row.name, structure - bare, kept - bare);
    }
}

/// The rank of two that a sample of one keeps in window 0.
fn drawn_rank() -> u32 {
    let (config, _) = Config::parse(ONE_OF_TWO).expect("a valid configuration");
    let plan = Plan::new(config, 2).expect("two ranks");
    let (directive, _) = Policy::new(&plan).first_directive();
    let is_kept = |rank: u32| kept(&plan, Rank(rank), WindowId(0), &directive).kept;
    assert_ne!(is_kept(0), is_kept(1), "a sample of one keeps one of two");
    u32::from(is_kept(1))
}

struct Job<'a> {
    launcher: &'a str,
    library: &'a Path,
    program: &'a Path,
    scratch: &'a Path,
}

impl Job<'_> {
    /// Command of the launcher with `ranks` ranks, up to the program; under the library, with its run in `directory`,
    /// if there is
    /// a configuration.
    fn launch(&self, ranks: u32, name: &str, config: Option<&str>, directory: &Path) -> Command {
        let mut command = Command::new(self.launcher);
        command.args(["-n", &ranks.to_string()]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.arg("env");
        if let Some(text) = config {
            let file = self.scratch.join(format!("{name}.toml"));
            std::fs::write(&file, text).expect("a writable scratch directory");
            command.arg(format!("AMPL_CONFIG={}", file.display()));
            command.arg(format!("AMPL_DIR={}", directory.display()));
            command.arg(format!("LD_PRELOAD={}", self.library.display()));
        }
        command
    }

    /// Costs by loop and rank of a run on two ranks; under the library if there is a configuration.
    fn run(
        &self,
        name: &str,
        config: Option<&str>,
        variable: Option<(&str, &str)>,
    ) -> BTreeMap<(String, u32), Cost> {
        let directory = self.scratch.join(name);
        let mut command = self.launch(2, name, config, &directory);
        if let Some((variable, value)) = variable {
            command.arg(format!("{variable}={value}"));
        }
        let output = command.arg(self.program).output().expect("the launcher starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
        // A run that was not observed would be a fine number for nothing.
        let observed = config.is_some() && variable.is_none();
        assert_eq!(directory.join("trace.ampl").exists(), observed, "{name}: observed or not as meant");
        text.lines().filter_map(parse).collect()
    }

    /// Instructions per call (per request) of one loop on one rank.
    fn instructions(&self, row: &Loop, name: &str, config: Option<&str>) -> f64 {
        let directory = self.scratch.join(format!("{name}-{}", row.function));
        let mut command = self.launch(1, name, config, &directory);
        command.args(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(format!("--toggle-collect={}", row.function));
        command.arg(self.program).args([row.name, &row.calls.to_string()]);
        let output = command.output().expect("the launcher starts");
        let (text, told) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "{} under valgrind: {text}{told}", row.name);
        let units = text.lines().find_map(|line| line.strip_prefix(row.name)?.split_whitespace().nth(1));
        let units: f64 = units.and_then(|units| units.parse().ok()).expect("the program says what it did");
        let collected = told.lines().find_map(|line| line.split_once("Collected :"));
        let collected: f64 =
            collected.and_then(|(_, number)| number.trim().parse().ok()).expect("valgrind counts");
        collected / units
    }
}

fn parse(line: &str) -> Option<((String, u32), Cost)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let rank = words.next()?.parse().ok()?;
    Some(((name, rank), (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
}

fn mpi() -> Option<(&'static str, &'static str)> {
    let works =
        |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpiexec.mpich"), ("mpicc", "mpirun")]
        .into_iter()
        .find(|(compiler, launcher)| works(compiler) && works(launcher))
}

/// The library built for this benchmark: beside or above its own executable.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the benchmark's own path");
    let found = program.ancestors().map(|above| above.join("libampl.so")).find(|path| path.is_file());
    found.expect("libampl.so in the target directory: cargo build --release -p ampl-preload")
}
