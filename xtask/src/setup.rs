//! `cargo xtask setup`: packages that demo and test need from the system.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell::{find, is_root, run as run_command, succeeds, target};

/// A requirement of the system, its test, and the Debian packages that bring it.
struct Need {
    what: &'static str,
    present: fn() -> bool,
    packages: &'static [&'static str],
}

const NEEDS: &[Need] = &[
    Need { what: "a C compiler", present: || find(&["gcc"]).is_some(), packages: &["gcc", "libc6-dev"] },
    Need { what: "a Fortran compiler", present: || find(&["gfortran"]).is_some(), packages: &["gfortran"] },
    Need { what: "Open MPI", present: open_mpi, packages: &["openmpi-bin", "libopenmpi-dev"] },
    Need { what: "MPICH", present: mpich, packages: &["mpich", "libmpich-dev"] },
    Need { what: "libclang", present: libclang, packages: &["libclang-dev"] },
    Need { what: "LAMMPS", present: || find(&["lmp"]).is_some(), packages: &["lammps"] },
    Need { what: "HPCC", present: || find(&["hpcc"]).is_some(), packages: &["hpcc"] },
    Need { what: "nauty", present: nauty, packages: &["nauty"] },
    Need { what: "Valgrind", present: || find(&["valgrind"]).is_some(), packages: &["valgrind"] },
    Need { what: "tmux", present: || find(&["tmux"]).is_some(), packages: &["tmux"] },
    Need { what: "iproute2", present: || find(&["ip"]).is_some(), packages: &["iproute2"] },
    Need {
        what: "util-linux",
        present: || ["unshare", "nsenter", "setpriv"].iter().all(|name| find(&[name]).is_some()),
        packages: &["util-linux"],
    },
    Need {
        what: "OTF2's tools and Python module",
        present: || find(&["otf2-print"]).is_some() && otf2_module(),
        packages: &["otf2-tools", "python3-otf2"],
    },
    Need { what: "SimGrid", present: || find(&["smpirun"]).is_some(), packages: &["libsimgrid-dev"] },
    Need { what: "a headless browser", present: browser, packages: &["chromium-headless-shell"] },
    Need {
        what: "Kokkos",
        present: || Path::new("/usr/include/trilinos/Kokkos_Core.hpp").is_file(),
        packages: &["libtrilinos-kokkos-dev"],
    },
    Need {
        what: "an OpenMP run time with OMPT",
        present: || Path::new("/usr/lib/x86_64-linux-gnu/libomp.so.5").is_file(),
        packages: &["libomp-dev"],
    },
    Need {
        what: "Slurm",
        present: || find(&["sbatch"]).is_some() && Path::new("/usr/sbin/slurmd").is_file(),
        packages: &["slurmctld", "slurmd", "slurm-client", "munge"],
    },
    Need {
        what: "an ssh server",
        present: || Path::new("/usr/sbin/sshd").is_file() && find(&["ssh"]).is_some(),
        packages: &["openssh-server", "openssh-client"],
    },
    Need {
        what: "Environment Modules and pkg-config",
        present: || Path::new("/usr/share/modules/init/sh").is_file() && find(&["pkg-config"]).is_some(),
        packages: &["environment-modules", "pkg-config"],
    },
    Need { what: "pip", present: pip, packages: &["python3", "python3-pip"] },
];

/// Needs of the demonstration, which compiles no MPI program.
const DEMO: &[Need] = &[
    Need {
        what: "a C compiler",
        present: || find(&["gcc", "cc"]).is_some(),
        packages: &["gcc", "libc6-dev"],
    },
    Need {
        what: "Open MPI",
        present: || find(&["mpirun.openmpi", "mpirun"]).is_some(),
        packages: &["openmpi-bin"],
    },
    Need { what: "LAMMPS", present: || find(&["lmp"]).is_some(), packages: &["lammps"] },
];

fn open_mpi() -> bool {
    let compiles = |name: &str| succeeds(Command::new(name).arg("--showme:version"));
    (compiles("mpicc.openmpi") || compiles("mpicc")) && find(&["mpirun.openmpi", "mpirun"]).is_some()
}

fn mpich() -> bool {
    // `-compile_info` needs no compiler run; the header proves that the development package is there.
    succeeds(Command::new("mpicc.mpich").arg("-compile_info")) && find(&["mpiexec.mpich"]).is_some()
}

/// True where the bindings of `ampl-replay` to MPI can be made.
pub fn libclang() -> bool {
    let holds = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| {
            let name = name.to_string_lossy();
            // `libclang-cpp` has another interface.
            let versioned = name.starts_with("libclang-") && !name.starts_with("libclang-cpp");
            name.starts_with("libclang.so") || versioned && name.contains(".so")
        })
    };
    let llvm = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let versions = llvm.filter(|path| path.to_string_lossy().contains("llvm")).map(|path| path.join("lib"));
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"].map(PathBuf::from);
    let named = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    named.into_iter().chain(places).chain(versions).any(|place| holds(&place))
}

fn nauty() -> bool {
    find(&["nauty-labelg", "labelg"]).is_some() && find(&["nauty-geng", "geng"]).is_some()
}

fn otf2_module() -> bool {
    succeeds(Command::new("/usr/bin/python3").args(["-c", "import otf2"]))
}

fn browser() -> bool {
    find(&["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]).is_some()
}

fn pip() -> bool {
    succeeds(Command::new("python3").args(["-m", "pip", "--version"]))
}

/// Installs missing packages and returns the names of requirements that are still missing.
///
/// Without root or a password-free sudo nothing is installed; the apt command is printed instead.
///
/// # Errors
/// When an installation that was started fails.
pub fn run() -> Result<Vec<String>> {
    let mut still = provide(NEEDS)?;
    if let Err(error) = mpi_abi() {
        eprintln!("setup: no MPI with the standard ABI: {error:#}");
        still.push("MPI-5 ABI (the mpich wheel)".to_owned());
    }
    if still.is_empty() {
        println!("setup: everything is there");
    } else {
        eprintln!("setup: missing: {}; what needs it will fail", still.join(", "));
    }
    Ok(still)
}

/// The same for the demonstration alone.
///
/// # Errors
/// As [`run`].
pub fn for_demo() -> Result<Vec<String>> {
    provide(DEMO)
}

/// Installs missing packages of `needs` and returns the names of requirements that are still missing.
fn provide(needs: &[Need]) -> Result<Vec<String>> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.present)()).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    Ok(needs.iter().filter(|need| !(need.present)()).map(|need| need.what.to_owned()).collect())
}

fn install(missing: &[&Need]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|need| need.what).collect();
    let mut packages: Vec<&str> = missing.iter().flat_map(|need| need.packages.iter().copied()).collect();
    packages.sort_unstable();
    packages.dedup();
    println!("setup: missing: {}", names.join(", "));
    let by_hand =
        format!("apt-get update && apt-get install -y --no-install-recommends {}", packages.join(" "));
    let apt = || -> Option<Command> {
        find(&["apt-get"])?;
        let mut command = if is_root() {
            Command::new("env")
        } else if succeeds(Command::new("sudo").args(["-n", "true"])) {
            let mut sudo = Command::new("sudo");
            sudo.args(["-n", "env"]);
            sudo
        } else {
            return None;
        };
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        Some(command)
    };
    let (Some(mut update), Some(mut install)) = (apt(), apt()) else {
        eprintln!("setup: as root, run: {by_hand}");
        return Ok(());
    };
    // `-qq` leaves errors; the list of unpacked packages is of no use.
    run_command(update.args(["update", "-qq"]))?;
    run_command(
        install
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(&packages)
            .stdout(std::process::Stdio::null()),
    )
    .with_context(|| format!("by hand: {by_hand}"))
}

/// Directory of the MPI with the standard ABI: `bin/mpicc_abi`, `bin/mpiexec`, `lib/libmpi_abi.so.1`.
pub fn mpi_abi_directory() -> PathBuf {
    target().join("mpi-abi")
}

/// Unpacks the `mpich` wheel, which carries a relocatable MPICH with the MPI-5 ABI.
fn mpi_abi() -> Result<()> {
    let home = mpi_abi_directory();
    if home.join("lib/libmpi_abi.so.1").is_file() && home.join("bin/mpicc_abi").is_file() {
        return Ok(());
    }
    if !pip() {
        bail!("pip is needed to fetch the mpich wheel");
    }
    println!("setup: fetching the mpich wheel");
    let work = target().join("tmp").join(format!("mpich-wheel-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    run_command(
        Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--only-binary=:all:", "--dest"])
            .arg(&work)
            .arg("mpich>=5,<6"),
    )?;
    let wheel = entry(&work, |name| name.ends_with(".whl"))?;
    let unpacked = work.join("unpacked");
    run_command(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    let data = entry(&unpacked, |name| name.ends_with(".data"))?.join("data");
    // The zip module drops permissions.
    for program in std::fs::read_dir(data.join("bin"))? {
        std::fs::set_permissions(program?.path(), std::fs::Permissions::from_mode(0o755))?;
    }
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::rename(&data, &home)?;
    std::fs::remove_dir_all(&work)?;
    if !home.join("lib/libmpi_abi.so.1").is_file() {
        bail!("this mpich wheel has no libmpi_abi.so.1");
    }
    Ok(())
}

/// The first entry of `directory` whose name `matches`.
fn entry(directory: &Path, matches: impl Fn(&str) -> bool) -> Result<PathBuf> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.file_name().and_then(|name| name.to_str()).is_some_and(&matches) {
            return Ok(path);
        }
    }
    bail!("{} does not hold what the wheel should", directory.display())
}
