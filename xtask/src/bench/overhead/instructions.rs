//! Instructions spent in and for the library, beside those of the program, by callgrind.
//!
//! Time runs slower under callgrind, so work by the clock (a window's end, a poll of the tree) happens too often
//! there: its share is scaled by the slowdown.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::callgrind::{Edge, Place, Profile};
use super::job::{Bench, State};
use super::program::Program;
use crate::shell::find;

/// Functions of the library that hand a call on to MPI, by the end of their name.
const FORWARDERS: [&str; 5] = ["::forward", "::intercept", "::whole", "::recorded", "::body"];

/// Functions that run by the clock; none of them calls another.
const CLOCKED: [&str; 3] = ["hooks::progress", "Thread::close_periods", "Thread::split"];

/// Functions of the C library that the library forwards, and that others call: MPI loads its parts by them.
const INTERPOSED: [&str; 3] = ["dlopen", "sched_yield", "usleep"];

/// Functions that run once per call site.
const ONCE: [&str; 1] = ["::new_site"];

/// Functions that `MPI_Finalize` runs for every call that is stored; none of them calls another.
const MERGE: [&str; 4] = ["compact::compact", "::rank_sections", "v0::Writer<W>::section", "Section::pack"];

/// Instructions of one rank by purpose.
#[derive(Clone, Debug, Default, PartialEq)]
struct Account {
    /// The library's instructions, in and for calls between Init and Finalize.
    calls: f64,
    /// Part of `calls` that runs by the clock.
    clocked: f64,
    /// Part of `calls` that runs once per call site, and the number of sites.
    once: (f64, f64),
    /// The library's instructions in `MPI_Init` and in `MPI_Finalize`.
    ends: [f64; 2],
    /// Part of the latter for the merge of the journal into the trace.
    merge: f64,
    /// The program's own instructions, outside of MPI; its reading of input and the like included.
    outside: f64,
    /// MPI's instructions between Init and Finalize, waiting included.
    inside: f64,
    /// Calls of the program, and the library's instructions for them, by function.
    functions: BTreeMap<String, (f64, f64)>,
}

/// Prints the library's instructions beside the program's, in every state or in `only` that one.
///
/// # Errors
/// When a job fails.
pub fn run(bench: &Bench, programs: &[Program], only: Option<State>) -> Result<()> {
    if find(&["valgrind"]).is_none() {
        println!("\ninstructions: callgrind is missing: apt install valgrind");
        return Ok(());
    }
    for program in programs {
        for state in State::COUNTED.into_iter().filter(|&state| only.is_none_or(|only| only == state)) {
            let native = bench.run(&program.short, state)?;
            let wall = native.ranks.iter().map(|rank| rank.inside_wall).fold(0.0, f64::max) / 1e9;
            let (accounts, slow) = count(bench, program, state)?;
            print(program, state, &accounts, wall / slow);
        }
    }
    Ok(())
}

/// Both ranks' accounts, and the time of the job, seconds.
fn count(bench: &Bench, program: &Program, state: State) -> Result<(Vec<Account>, f64)> {
    let directory = bench.scratch.join("counted");
    let mut job = bench.launch(true);
    bench.watch(&mut job, state, &directory);
    job.args(["valgrind", "-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]);
    job.arg(format!(
        "--callgrind-out-file={}",
        bench.scratch.join("callgrind.%q{OMPI_COMM_WORLD_RANK}").display()
    ));
    let started = Instant::now();
    let output = job.args(&program.short).output()?;
    let took = started.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("callgrind, {}: {}", program.name, String::from_utf8_lossy(&output.stderr));
    }
    bench.info(&directory)?;
    let account = |rank: usize| {
        let path = bench.scratch.join(format!("callgrind.{rank}"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Account::of(&Profile::parse(&text)?))
    };
    Ok(((0..2).map(account).collect::<Result<_>>()?, took))
}

fn is_ours(place: &Place) -> bool {
    place.object.ends_with("/libampl.so")
}

fn is_mpi(place: &Place) -> bool {
    let name = place.object.rsplit('/').next().unwrap_or_default();
    ["libmpi", "libopen-", "mca_"].iter().any(|start| name.starts_with(start))
}

impl Account {
    fn of(profile: &Profile) -> Self {
        let mut account = Self::default();
        // Entered by the program, entered by MPI (a callback), handed on to MPI.
        let (mut entered, mut called_back, mut handed_on) = (0.0, 0.0, 0.0);
        let mut ends = [[0.0; 2]; 2];
        for ((from, to), &Edge { calls, instructions }) in &profile.edges {
            let (calls, instructions) = (calls as f64, instructions as f64);
            let end = ["MPI_Init", "MPI_Finalize"].iter().position(|name| to.function.contains(name));
            if is_ours(to) && !is_ours(from) {
                let by_name = to.function.to_ascii_uppercase().starts_with("MPI_");
                if is_mpi(from) && !named(to, &INTERPOSED) {
                    called_back += instructions;
                } else if by_name {
                    entered += instructions;
                    match end {
                        Some(end) => ends[end][0] += instructions,
                        None => {
                            let function = account.functions.entry(to.function.clone()).or_default();
                            function.0 += calls;
                            function.1 += instructions;
                        }
                    }
                }
            } else if is_ours(from) && is_mpi(to) && named(from, &FORWARDERS) {
                handed_on += instructions;
                match end {
                    Some(end) => ends[end][1] += instructions,
                    None => {
                        let name = to.function.trim_start_matches('P').to_owned();
                        account.functions.entry(name).or_default().1 -= instructions;
                    }
                }
            } else if is_ours(to) && named(to, &CLOCKED) {
                account.clocked += instructions;
            } else if is_ours(to) && named(to, &MERGE) {
                account.merge += instructions;
            } else if is_ours(to) && named(to, &ONCE) {
                account.once.0 += instructions;
                account.once.1 += calls;
            }
        }
        // MPI calls back while it ends, to finalize; no other function of ours is ever called back.
        account.ends = [ends[0][0] - ends[0][1], ends[1][0] - ends[1][1] + called_back];
        account.calls = entered + called_back - handed_on - account.ends[0] - account.ends[1];
        // The dynamic linker has done its work before the program begins.
        let linking = profile.own.iter().filter(|(place, _)| place.object.contains("/ld-linux"));
        let linking: u64 = linking.map(|(_, instructions)| instructions).sum();
        account.outside = (profile.total() - linking) as f64 - entered;
        account.inside = handed_on - called_back - ends[0][1] - (ends[1][1] - called_back);
        account
    }

    /// Calls of the program.
    fn made(&self) -> f64 {
        self.functions.values().map(|function| function.0).sum()
    }
}

fn named(place: &Place, ends: &[&str]) -> bool {
    ends.iter().any(|end| place.function.ends_with(end))
}

/// `dilation` is native time over callgrind's.
fn print(program: &Program, state: State, accounts: &[Account], dilation: f64) {
    println!(
        "\n{}, instructions, {}: the library's per call, the merge of its journal in MPI_Finalize too; their share of \
         the program's, what is done once apart",
        program.name,
        state.name()
    );
    println!(
        "{:<6} {:>9} {:>9} {:>13} {:>9} {:>15} {:>15} {:>10} {:>10} {:>10}",
        "rank",
        "calls",
        "per call",
        "by the clock",
        "merge",
        "of outside MPI",
        "of everything",
        "sites",
        "per site",
        "the ends"
    );
    for (rank, account) in accounts.iter().enumerate() {
        let hooks = account.calls - account.clocked - account.once.0;
        let clocked = account.clocked * dilation;
        let share = |of: f64| 100.0 * (hooks + clocked + account.merge) / of;
        println!(
            "{rank:<6} {:>9.0} {:>9.0} {:>13.0} {:>9.0} {:>13.3} % {:>13.3} % {:>10.0} {:>10.0} {:>9.1}M",
            account.made(),
            hooks / account.made(),
            clocked / account.made(),
            account.merge / account.made(),
            share(account.outside),
            share(account.outside + account.inside),
            account.once.1,
            account.once.0 / account.once.1,
            (account.ends[0] + account.ends[1] - account.merge) / 1e6,
        );
    }
    if accounts.iter().any(|account| account.clocked == 0.0 || account.once.1 == 0.0) {
        println!("not told apart: functions of the library have other names than CLOCKED or ONCE");
    }
    println!(
        "by function, rank 0, what is done once or by the clock (callgrind's, {:.0} times slower) included:",
        1.0 / dilation
    );
    for (name, (calls, instructions)) in accounts.iter().take(1).flat_map(|account| &account.functions) {
        println!("  {name:<24} {calls:>9.0} x {:>7.0}", instructions / calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_pays_for_what_it_does_and_not_for_what_it_hands_on() {
        let text = "ob=/lib64/ld-linux-x86-64.so.2\nfn=dl_main\n1 5\nob=/bin/app\nfn=main\n1 1000\n\
            cob=/x/libampl.so\ncfn=MPI_Init\ncalls=1 0\n1 500\n\
            cob=/x/libampl.so\ncfn=MPI_Send\ncalls=4 0\n1 400\n\
            cob=/x/libampl.so\ncfn=dlopen\ncalls=1 0\n1 60\n\
            cob=/x/libampl.so\ncfn=MPI_Finalize\ncalls=1 0\n1 300\n\
            ob=/x/libampl.so\nfn=ampl::wrappers::_::forward\n1 0\n\
            cob=/x/libmpi.so.40\ncfn=PMPI_Init\ncalls=1 0\n1 450\n\
            cob=/x/libmpi.so.40\ncfn=PMPI_Send\ncalls=4 0\n1 200\n\
            cob=/x/libmpi.so.40\ncfn=PMPI_Finalize\ncalls=1 0\n1 290\n\
            fn=ampl::hooks::leave\n1 110\ncfn=ampl::hooks::progress\ncalls=1 0\n1 80\n\
            cfn=ampl_agent::thread::Thread::new_site\ncalls=1 0\n1 20\n\
            fn=ampl::settle::at_deletion\n1 260\n\
            cfn=ampl_trace::compact::compact\ncalls=1 0\n1 150\n\
            fn=dlopen\n1 60\n\
            ob=/x/libmpi.so.40\nfn=PMPI_Finalize\n1 770\ncob=/x/libampl.so\ncfn=dlopen\ncalls=1 0\n1 60\n\
            cob=/x/libampl.so\ncfn=ampl::settle::at_deletion\n\
            calls=1 0\n1 250\n";
        let account = Account::of(&Profile::parse(text).unwrap());
        assert_eq!((account.ends, account.merge), ([50.0, 260.0], 150.0));
        assert_eq!((account.calls, account.clocked, account.once), (200.0, 80.0, (20.0, 1.0)));
        assert_eq!((account.outside, account.inside), (1000.0, 200.0));
        assert_eq!(account.functions["MPI_Send"], (4.0, 200.0));
        assert_eq!(account.made(), 4.0);
    }
}
