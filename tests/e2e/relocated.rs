//! The layout that users install, packed and unpacked in another place: it works from there, and other tools find it. Linters of
//! the recipes that install it.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home};
use ampl_tests::run::{Form, monitor, number, parse, text_of};
use ampl_tests::{process, python};

/// The command of a copy of the layout, as `tar` packs and unpacks it.
fn unpacked(scratch: &Scratch) -> PathBuf {
    let prefix = ampl().canonicalize().expect("the command");
    let prefix = prefix.ancestors().nth(2).expect("bin is in the layout");
    let place = scratch.path().join("elsewhere");
    std::fs::create_dir(&place).expect("the scratch directory is ours");
    let archive = scratch.path().join("ampl.tar");
    let tar = |words: &[&std::ffi::OsStr]| {
        process::run(Command::new("tar").args(words), Duration::from_secs(120)).success();
    };
    tar(&["-C".as_ref(), prefix.as_os_str(), "-cf".as_ref(), archive.as_os_str(), ".".as_ref()]);
    tar(&["-C".as_ref(), place.as_os_str(), "-xf".as_ref(), archive.as_os_str()]);
    place.join("bin/ampl")
}

#[test]
fn an_unpacked_archive_works_where_it_is() {
    let scratch = Scratch::new("relocated");
    let command = unpacked(&scratch);
    let ask = |words: &[&std::ffi::OsStr]| {
        process::run(Command::new(&command).args(words), Duration::from_secs(60)).success()
    };
    let shown = ask(&["exec".as_ref(), "--dry-run".as_ref(), "--".as_ref(), "true".as_ref()]).stdout;
    let library = scratch.path().join("elsewhere/lib/libampl.so");
    let library = library.canonicalize().expect("the library");
    assert!(shown.contains(library.to_str().expect("a path of ours")), "{shown}");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let run = scratch.path().join(format!("{mpi:?}"));
        let words = [command.as_os_str(), "run".as_ref(), "-o".as_ref(), run.as_os_str(), "--".as_ref()];
        let words = words.map(std::ffi::OsString::from);
        let finished = job.run(&[&words[..], &job.launch(), &job.words].concat(), scratch.path());
        let said = finished.success().stderr;
        assert!(said.contains("complete"), "{mpi:?}: {said}");
        let info = parse(&ask(&["info".as_ref(), run.as_os_str(), "--json".as_ref()]).stdout);
        assert_eq!(number(&info["functions"]["MPI_Barrier"]), 40.0, "{mpi:?}: {info}");
        // A recipe of its own, by name.
        let finished = job.run(
            &[&words[..2], &["-c".into(), "always".into(), "--".into()], &job.launch(), &job.words].concat(),
            scratch.path(),
        );
        finished.success();
    }
}

#[test]
fn a_place_that_no_program_can_be_given_is_refused_and_reads_runs() {
    let scratch = Scratch::new("spaces");
    let elsewhere = unpacked(&scratch);
    let place = scratch.path().join("else where");
    std::fs::rename(elsewhere.ancestors().nth(2).expect("bin is in the layout"), &place)
        .expect("the scratch directory is ours");
    let ask = |words: &[&str]| {
        let mut command = Command::new(place.join("bin/ampl"));
        process::run(command.args(words).current_dir(scratch.path()), Duration::from_secs(60))
    };
    let run = Job::of(Mpi::OpenMpi, 1, "steady", &["5"]);
    let run = monitor(&run, "", Form::Run).success();
    let refused = ask(&["exec", "--", "true"]);
    assert_eq!(refused.status.code(), Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains("under a path without spaces and colons"), "{}", refused.stderr);
    assert!(ask(&["doctor"]).stdout.contains("under a path without spaces and colons"));
    let run = run.run.to_str().expect("a path of ours");
    assert!(ask(&["info", run]).success().stdout.contains("complete"));
    assert!(
        ask(&["doctor", "--config", "-c", "always"]).success().stdout.contains("share/configs/always.toml")
    );
}

/// Loads the module of the layout beside this script, and compiles a program that includes `ampl.h` by each way to it.
const FOUND: &str = r#"
set -e
. /usr/share/modules/init/bash
flags=$(PKG_CONFIG_PATH=$PWD/elsewhere/share/pkgconfig pkg-config --cflags ampl)
cc -Werror $flags -fsyntax-only uses.c
"$CMAKE" -S . -B built -DCMAKE_PREFIX_PATH="$PWD/elsewhere" >cmake.out
"$CMAKE" --build built >>cmake.out
module use "$PWD/elsewhere/share/modulefiles"
module load ampl
command -v ampl
ampl --version
man -w ampl-run
cc -Werror -fsyntax-only uses.c
module unload ampl
! command -v ampl
. elsewhere/share/bash-completion/completions/ampl
complete -p ampl
"#;

const PROJECT: &str = "cmake_minimum_required(VERSION 3.13)\nproject(uses C)\nfind_package(ampl 0.1 REQUIRED)\n\
    add_library(uses OBJECT uses.c)\ntarget_link_libraries(uses PRIVATE ampl::ampl)\n";

#[test]
fn modules_pkg_config_and_cmake_find_an_unpacked_archive() {
    let scratch = Scratch::new("found");
    unpacked(&scratch);
    scratch.write(
        "uses.c",
        "#include <ampl.h>\nvoid uses(void) { ampl_region_begin(\"uses\"); ampl_region_end(\"uses\"); }\n",
    );
    scratch.write("CMakeLists.txt", PROJECT);
    let mut shell = Command::new("bash");
    shell.args(["-c", FOUND]).current_dir(scratch.path()).env_remove("MODULEPATH");
    shell.env("CMAKE", python::packaging().join("cmake/data/bin/cmake"));
    let said = process::run(&mut shell, Duration::from_secs(60)).success().stdout;
    let place = scratch.path().join("elsewhere");
    for part in ["elsewhere/bin/ampl\n", "elsewhere/share/man/man1/ampl-run.1\n", "-F _ampl ampl\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for completion in [
        "bash-completion/completions/ampl",
        "zsh/site-functions/_ampl",
        "fish/vendor_completions.d/ampl.fish",
    ] {
        let offered = text_of(&place.join("share").join(completion));
        assert!(offered.contains("history"), "{completion}");
        assert!(!offered.contains("copy-journals"), "{completion}");
    }
    let of = |name: &str| text_of(&place.join("share/doc/ampl").join(name));
    let bill = parse(&of("sbom.cdx.json"));
    let components = bill["components"].as_array().expect("a list");
    assert!(components.len() > 100, "{} components", components.len());
    let licences = of("LICENCES");
    for component in components {
        let name =
            format!("{} v{}", component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
        assert!(licences.contains(&name), "{name}");
    }
    assert!(!of("GLIBC").is_empty() && of("LICENSE-MIT").contains("MIT"));
}

#[test]
fn linters_of_the_recipes_pass() {
    let scratch = Scratch::new("recipes");
    let recipes = home().join("../integrations/packages");
    let recipe = text_of(&recipes.join("spack.py"));
    let recipe = recipe.replace("@VERSION@", "0.1.0").replace("@SHA256@", &"0".repeat(64));
    // Spack demands exactly one of several conditions in one requirement.
    let several = |line: &&str| line.trim_start().starts_with("requires(") && line.matches('"').count() > 2;
    assert_eq!(recipe.lines().filter(several).collect::<Vec<_>>(), [] as [&str; 0]);
    // Open MPI's launcher refuses root.
    let image = text_of(&recipes.join("Dockerfile"));
    let user = image.lines().rfind(|line| line.starts_with("USER "));
    assert!(
        user.is_some_and(|user| !user.starts_with("USER 0") && !user.starts_with("USER root")),
        "{image}"
    );
    let recipe = scratch.write("package.py", &recipe);
    let lint = |program: &str, words: &[&str], file: &std::path::Path| {
        let mut command = Command::new(python::packaging().join("bin").join(program));
        let done = process::run(command.args(words).arg(file), Duration::from_secs(60));
        assert!(done.status.success(), "{program}: {}{}", done.stdout, done.stderr);
    };
    // Spack's own settings for package.py, where the names are those of an import with a star.
    let check = ["check", "--isolated", "--line-length", "99", "--extend-select", "I", "--ignore"];
    lint("ruff", &[&check[..], &["E731,E203,F403,F405,F811,F821"]].concat(), &recipe);
    lint("ruff", &["format", "--isolated", "--check", "--line-length", "99"], &recipe);
    lint("hadolint", &[], &recipes.join("Dockerfile"));
}

/// Fortran programs are compiled with the module of the layout; nothing else is needed.
#[test]
fn a_fortran_program_takes_the_module_of_an_unpacked_archive() {
    const RANKS: u32 = 2;
    const STEPS: f64 = 40.0;
    let mpi = Mpi::OpenMpi;
    let scratch = Scratch::new("fortran");
    let command = unpacked(&scratch);
    let module = scratch.path().join("elsewhere/share/fortran/ampl.f90");
    let integrations = home().join("../integrations");
    let program = scratch.path().join("stencil");
    let mut compile = Command::new(mpi.fortran_compiler());
    compile.arg(module).arg(integrations.join("examples/fortran/stencil.f90")).arg("-o").arg(&program);
    process::run(compile.current_dir(scratch.path()), Duration::from_secs(60)).success();
    let job = Job::new(mpi, RANKS, &program, &[]);
    let words: [&std::ffi::OsStr; 7] = [
        command.as_ref(),
        "run".as_ref(),
        "-c".as_ref(),
        &integrations.join("examples/job.toml").into_os_string(),
        "-o".as_ref(),
        "run".as_ref(),
        "--".as_ref(),
    ];
    let words = words.map(std::ffi::OsString::from);
    job.run(&[&words[..], &job.launch(), &job.words].concat(), scratch.path()).success();
    let mut info = Command::new(&command);
    info.args(["info", "run", "--json"]).current_dir(scratch.path());
    let info = parse(&process::run(&mut info, Duration::from_secs(60)).success().stdout);
    // A window ends with each time step, which only the module tells.
    assert_eq!(number(&info["windows"]), STEPS + 1.0, "{info}");
}
