//! `cargo xtask demo`: a real program, adaptively sampled, from nothing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{find, is_root, output, root, run as run_command, target};
use crate::{dist, setup};

/// Runs LAMMPS on 8 ranks under ampl and prints the path of the run.
///
/// # Errors
/// When Open MPI or LAMMPS cannot be had, the build fails, or the job does.
pub fn run() -> Result<()> {
    let Recorded { ampl, config, run, page } = record()?;
    println!();
    println!("The run:        {}", run.display());
    println!("Its report:     {} (for any browser)", page.display());
    println!("Its settings:   {}", config.display());
    println!("Look closer:    {} estimate {}", ampl.display(), run.display());
    println!("                {} decisions {}", ampl.display(), run.display());
    println!("                {} decode {} --rank 0", ampl.display(), run.display());
    println!("Your program:   {} run -- mpirun -n 8 ./app", ampl.display());
    Ok(())
}

/// The demonstration's run, and what made it.
pub struct Recorded {
    ampl: PathBuf,
    config: PathBuf,
    run: PathBuf,
    /// Its report.
    pub page: PathBuf,
}

/// Runs the demonstration and writes its report.
///
/// # Errors
/// As [`run`].
pub fn record() -> Result<Recorded> {
    let missing = setup::for_demo()?;
    for need in ["Open MPI", "LAMMPS"] {
        if missing.iter().any(|name| name == need) {
            bail!("the demonstration needs {need}; install it as said above and try again");
        }
    }
    let ampl = dist::for_demo()?.join("bin/ampl");
    let launcher = find(&["mpirun.openmpi", "mpirun"]).expect("setup found Open MPI's launcher");
    let run = run_directory()?;
    let config = root().join("configs/lammps-demo.toml");
    println!("demo: LAMMPS, a Lennard-Jones melt, on 8 ranks under ampl");
    let mut job = Command::new(&ampl);
    job.arg("run").arg("-c").arg(&config).arg("-o").arg(&run).arg("--").arg(&launcher);
    job.args(["-n", "8", "--oversubscribe", "lmp", "-log", "none", "-in", "in.melt"]);
    // Paths of this machine are nobody's business.
    job.current_dir(root().join("tests/lammps"));
    if is_root() {
        // mpirun refuses root otherwise; here it is our own job on the user's own machine.
        job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    run_command(&mut job)?;
    let page = run.join("report.html");
    run_command(Command::new(&ampl).arg("report").arg(&run).arg("-o").arg(&page))?;
    Ok(Recorded { ampl, config, run, page })
}

/// A directory name under `target/demo` that no earlier run has.
fn run_directory() -> Result<PathBuf> {
    let home = target().join("demo");
    std::fs::create_dir_all(&home)?;
    let Some(stamp) = output(Command::new("date").arg("+%Y%m%d-%H%M%S")) else {
        bail!("cannot tell the date");
    };
    let name = |attempt: u32| {
        if attempt == 1 { stamp.clone() } else { format!("{stamp}-{attempt}") }
    };
    let free = (1..).map(|attempt| home.join(name(attempt))).find(|path| !path.exists());
    Ok(free.expect("some number is free"))
}
