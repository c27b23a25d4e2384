//! `run`, `exec` and `doctor` as a user meets them, with launchers made of shell; no MPI is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::PoisonError;

mod place;
use place::{Place, STARTING, output, refused, said, start};

#[test]
fn wrong_configuration_starts_nothing() {
    let place = Place::new();
    fs::write(place.at("work/job.toml"), "# job\n[sampling]\nwindows_per_updates = 4\n").unwrap();
    let message = "ampl: unknown key 'sampling.windows_per_updates' (job.toml:3:1): did you mean 'windows_per_update'?\n";
    for form in [
        &["run", "-c", "job.toml", "--", "mpirun", "-n", "1", "./app"][..],
        &["exec", "-c", "job.toml", "--", "./app"],
    ] {
        assert_eq!(place.said(form), (2, String::new(), message.into()));
    }
    refused(&place, &["exec", "-c", "none.toml", "--", "./app"], 2, "none.toml");
    refused(
        &place,
        &["exec", "--set", "sampling.sead=1", "--", "./app"],
        2,
        "(--set sampling.sead=1): did you mean 'seed'?",
    );
    refused(&place, &["exec", "--set", "nonsense.key=1", "--", "./app"], 2, "(--set nonsense.key=1)");
    refused(&place, &["exec", "--set", "seed", "--", "./app"], 2, "KEY=VALUE");
    refused(&place, &["exec", "--set", "group.A.error=1", "--", "./app"], 2, "no entry \"A\"");
    // A setting does not move the place of an error in the file.
    refused(
        &place,
        &["exec", "-c", "job.toml", "--set", "sampling.seed=1", "--", "./app"],
        2,
        "(job.toml:3:1)",
    );
    fs::write(place.at("work/bytes.toml"), b"# \xff\n").unwrap();
    refused(&place, &["exec", "-c", "bytes.toml", "--", "./app"], 2, "not UTF-8 on line 1");
}

#[test]
fn mistakes_on_the_command_line_exit_2() {
    let place = Place::new();
    refused(&place, &["run", "--nonsense"], 2, "--nonsense");
    refused(&place, &["exec"], 2, "APP");
    refused(&place, &["unheard-of"], 2, "unheard-of");
    assert_eq!(place.said(&[]).0, 2);
    for command in ["run", "exec", "doctor"] {
        let (code, out, _) = place.said(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(out.contains("Example:\n"), "{out}");
    }
}

#[test]
fn launchers_that_run_does_not_know_get_the_exec_form() {
    let place = Place::new();
    refused(&place, &["run", "--", "./app"], 2, "ampl exec -- ./app");
    refused(&place, &["run", "--", "mpirun", "--strange", "./app"], 2, "ampl exec -- ./app");
    refused(&place, &["run", "--", "mpirun", "-n", "2"], 2, "names no program");
    refused(&place, &["run", "--", "/nowhere/srun", "./app"], 4, "there is no '/nowhere/srun'");
    // Words that are no program get no advice to start them.
    refused(&place, &["run", "--", "-n", "2", "./app"], 2, "write: ampl run -- mpirun -n 2 ./app");
    refused(&place, &["run", "--", "A=b", "mpirun", "./app"], 2, "write: ampl run -- env A=b mpirun ./app");
    refused(&place, &["run", "--", "mpirun -n 2 ./app"], 2, "without them: ampl run -- mpirun -n 2 ./app");
    place.script("path/mpiexec", "echo another 1.0");
    refused(&place, &["run", "--", "mpiexec", "./app"], 2, "not a launcher");
}

#[test]
fn a_directory_that_exists_is_refused() {
    let place = Place::new();
    for form in
        [&["run", "-o", ".", "--", "mpirun", "-n", "1", "./app"][..], &["exec", "-o", ".", "--", "./app"]]
    {
        refused(&place, form, 2, "exists");
    }
    // Rank 0 may have made it before this rank starts.
    let mut late = place.command(&["exec", "-o", ".", "--dry-run", "--", "./app"]);
    assert_eq!(said(&output(late.env("PMI_RANK", "3"))).0, 0);
}

#[test]
fn dry_run_prints_the_environment() {
    let place = Place::new();
    fs::write(place.at("work/job.toml"), "[sampling]\nseed = 1\n").unwrap();
    let preload = format!("LD_PRELOAD={}\n", place.at("lib/libampl.so").display());
    assert_eq!(place.said(&["exec", "--dry-run", "--", "./app"]), (0, preload.clone(), String::new()));
    let (_, out, _) = place.said(&["exec", "--dry-run", "-c", "job.toml", "-o", "new", "--", "./app"]);
    let (job, dir) = (place.at("work/job.toml"), place.at("work/new"));
    assert_eq!(out, format!("{preload}AMPL_CONFIG={}\nAMPL_DIR={}\n", job.display(), dir.display()));
    let (_, out, _) =
        place.said(&["exec", "--dry-run", "-c", "job.toml", "--set", "sampling.seed=7", "--", "./app"]);
    let origin = format!("# ampl: from {} with --set sampling.seed=7\n", job.display());
    assert_eq!(out, format!("{preload}AMPL_CONFIG={origin}[sampling]\nseed = 7\n\n"));
    // The same through the environment; the option wins.
    let mut command = place.command(&["exec", "--dry-run", "--", "./app"]);
    let (_, out, _) = said(&output(command.env("AMPL_CONFIG", "job.toml").env("AMPL_DIR", "d")));
    assert!(out.contains(&format!("AMPL_CONFIG={}\n", job.display())) && out.contains("work/d\n"), "{out}");
    let mut command = place.command(&["exec", "--dry-run", "--set", "window.every=2", "--", "./app"]);
    let (_, out, _) = said(&output(command.env("AMPL_CONFIG", "sampling.seed = 3\n")));
    assert!(out.contains("sampling.seed = 3\n") && out.contains("[window]\nevery = 2\n"), "{out}");
    let mut command = place.command(&["exec", "--dry-run", "--", "./app"]);
    let (_, out, _) = said(&output(command.env("LD_PRELOAD", "/nowhere/libother.so")));
    assert_eq!(out.trim(), format!("{}:/nowhere/libother.so", preload.trim()));
}

#[test]
fn exec_becomes_the_application() {
    let place = Place::new();
    place.script("work/show", "echo \"$LD_PRELOAD $AMPL_DIR $*\"; exit 7");
    let (code, out, _) = place.said(&["exec", "-o", "r", "--", "./show", "a b", "-n"]);
    let (library, dir) = (place.at("lib/libampl.so"), place.at("work/r"));
    assert_eq!((code, out), (7, format!("{} {} a b -n\n", library.display(), dir.display())));
    let mut command = place.command(&["exec", "--set", "wrong=1", "--", "./show"]);
    let (code, out, err) = said(&output(command.env("AMPL_DISABLE", "1")));
    assert_eq!((code, out.as_str(), err.as_str()), (7, "  \n", ""));
    refused(&place, &["exec", "--", "./absent"], 127, "absent");
    refused(&place, &["exec", "--", "/"], 126, "cannot start");
    fs::set_permissions(place.at("work/show"), fs::Permissions::from_mode(0o644)).unwrap();
    refused(&place, &["exec", "--", "./show"], 126, "cannot start");
    fs::remove_file(library).unwrap();
    refused(&place, &["exec", "--", "./app"], 4, "libampl.so");
}

#[test]
fn run_puts_exec_before_the_program_and_returns_the_status() {
    let place = Place::new();
    fs::write(place.at("work/job.toml"), "[output]\ndir = 'r-{app}'\n").unwrap();
    place.script("work/show", "echo \"$AMPL_CONFIG $AMPL_DIR $*\"; mkdir \"$AMPL_DIR\"; exit 9");
    let form = ["run", "-c", "job.toml", "--", "mpirun", "-n", "2", "./show", "x"];
    let (code, out, err) = place.said(&form);
    let (job, dir) = (place.at("work/job.toml"), place.at("work/r-show"));
    assert_eq!((code, out), (9, format!("{} {} x\n", job.display(), dir.display())), "{err}");
    assert!(err.contains(&format!("ampl: run directory {}\n", dir.display())), "{err}");
    // The name is taken now.
    let (_, out, _) = place.said(&form);
    assert!(out.contains("/r-show-2 x"), "{out}");
    let (_, out, err) =
        place.said(&["run", "-o", "other", "--set", "window.every=3", "--", "mpirun", "-n", "2", "./app"]);
    assert_eq!(out, "app\n");
    assert!(err.contains("made no MPI_Init that ampl saw"), "{err}");
}

#[test]
fn notices_are_printed_once() {
    let place = Place::new();
    let setting = ["--set", "window.marker=auto", "--set", "trace.structure=off"];
    let notice = "records all of (--set window.marker=auto): period:250ms is used";
    let run = [&["run"][..], &setting, &["--", "mpirun", "-n", "1", "./app"]].concat();
    let exec = [&["exec"][..], &setting, &["--", "./app"]].concat();
    for form in [run, exec] {
        let (code, _, err) = place.said(&form);
        assert_eq!((code, err.matches(notice).count()), (0, 1), "{err}");
    }
    let mut later = place.command(&[&["exec"][..], &setting, &["--dry-run", "--", "./app"]].concat());
    assert_eq!(said(&output(later.env("OMPI_COMM_WORLD_RANK", "1"))).2, "");
}

#[test]
fn a_launcher_ended_by_a_signal_gives_128_and_its_number() {
    let place = Place::new();
    place.script("work/die", "kill -KILL $PPID");
    assert_eq!(place.said(&["run", "--", "mpirun", "-n", "1", "./die"]).0, 128 + 9);
}

#[test]
fn a_stderr_that_takes_nothing_ends_no_run() {
    let place = Place::new();
    place.script("work/three", "echo ran; exit 3");
    let mut command = place.command(&["run", "--", "mpirun", "-n", "1", "./three"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = start(command.stdout(Stdio::piped()).stderr(full));
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(3), &b"ran\n"[..]));
}

#[test]
fn disabled_runs_the_launcher_as_it_is() {
    let place = Place::new();
    place.script("work/show", "echo \"[$LD_PRELOAD] $*\"");
    let mut command = place.command(&["run", "--", "mpirun", "-n", "1", "./show", "x"]);
    let (code, out, err) = said(&output(command.env("AMPL_DISABLE", "1")));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "[] x\n", ""));
}

#[test]
fn run_survives_an_interrupt_and_passes_termination_on() {
    let place = Place::new();
    place.script("work/wait", "touch started\nexec sleep 1000000");
    // The launcher ends in `exec`, so that a signal reaches the application.
    place.script(
        "path/mpirun",
        "case $1 in --version) echo 'mpirun (Open MPI) 4.1.4'; exit;; esac\nshift 2\nexec \"$@\"",
    );
    let mut command = place.command(&["run", "--", "mpirun", "-n", "1", "./wait"]);
    let mut child = start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    while !place.at("work/started").exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = child.id().to_string();
    let signal = |name: &str| output(Command::new("kill").args([name, &pid])).status;
    assert!(signal("-INT").success());
    // A signal that is still pending proves nothing.
    while is_pending(child.id(), libc::SIGINT) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.try_wait().unwrap().is_none(), "ended by the interrupt");
    assert!(signal("-TERM").success());
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(128 + 15), None));
}

/// True where a signal that was sent to a process has not reached any of its threads yet.
fn is_pending(process: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let masks = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:"));
    masks.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap()).any(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A C program whose only loop calls something on line 4, or nothing where there is no compiler.
fn compiled(place: &Place, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (file, program) = (place.at("work/loop.c"), place.at("work/loop"));
    fs::write(&file, source).unwrap();
    let mut command = Command::new("cc");
    command.args(flags).arg("-o").arg(&program).arg(&file);
    // The compiler writes the program, and is a process itself.
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let built = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !built {
        eprintln!("skipped: no C compiler for {flags:?}");
    }
    built.then_some(program)
}

const LOOP: &str = "#include <stdio.h>\n\nint main(void) {\n  puts(\"loop\");\n  return 0;\n}\n";

#[test]
fn a_marker_s_source_line_gets_its_code() {
    let place = Place::new();
    let set = |site: &str| format!("window.marker=mpi:MPI_Barrier@{site}");
    let Some(program) = compiled(&place, LOOP, &["-g"]) else { return };
    let program = program.to_str().unwrap();
    let dry = |site: &str| place.said(&["exec", "--dry-run", "--set", &set(site), "--", program]);
    let (code, out, err) = dry("loop.c:4");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("mpi:MPI_Barrier@loop.c:4=loop+0x") && out.contains("-0x"), "{out}");
    let (_, out, _) = dry("work/loop.c:4");
    assert!(out.contains("@work/loop.c:4=loop+0x"), "{out}");
    let (_, out, _) = dry("loop+0x10");
    assert!(out.contains("@loop+0x10\""), "{out}");
    refused(
        &place,
        &["exec", "--set", &set("loop.c:2"), "--", program],
        2,
        "the nearest line that has is loop.c:3",
    );
    refused(&place, &["exec", "--set", &set("other.c:4"), "--", program], 2, "--set window.marker=");
    let Some(bare) = compiled(&place, LOOP, &["-s"]) else { return };
    refused(&place, &["exec", "--set", &set("loop.c:4"), "--", bare.to_str().unwrap()], 2, "-g");
}

#[test]
fn a_file_of_sites_takes_its_place() {
    let place = Place::new();
    fs::create_dir(place.at("work/jobs")).unwrap();
    fs::write(place.at("work/jobs/job.toml"), "sites = \"calls.toml\"\n[sampling]\nseed = 5\n").unwrap();
    let exec = |set: &[&str], program: &str| {
        let mut args = vec!["exec", "--dry-run", "-c", "jobs/job.toml"];
        set.iter().for_each(|setting| args.extend(["--set", setting]));
        args.extend(["--", program]);
        place.said(&args)
    };
    let sites = |text: &str| fs::write(place.at("work/jobs/calls.toml"), text).unwrap();
    let refuses = |set: &[&str], program: &str, words: &[&str]| {
        let (code, _, err) = exec(set, program);
        assert_eq!(code, 2, "{err}");
        words.iter().for_each(|word| assert!(err.contains(word), "{word}: {err}"));
    };
    refuses(&[], "./app", &["cannot read \"calls.toml\"", "(jobs/job.toml:1:9)"]);
    sites("[[site]]\nmatch = \"MPI_Iprobe\"\ntrace = \"off\"\n[[site]]\nmatch = \"loop.c:4\"\n");
    let (code, out, err) = exec(&["site.MPI_Iprobe.trace=aggregate"], "./app");
    assert_eq!(code, 2, "the program has no lines: {out}");
    assert!(err.contains("'loop.c'") && err.contains("site.match, jobs/job.toml"), "{err}");
    if let Some(program) = compiled(&place, LOOP, &["-g"]) {
        let program = program.to_str().unwrap();
        let (code, out, err) = exec(&["site.MPI_Iprobe.trace=aggregate"], program);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("trace = \"aggregate\"") && !out.contains("trace = \"off\""), "{out}");
        assert!(out.contains("match = \"loop.c:4=loop+0x"), "{out}");
    }
    // Errors in it are reported there, and errors in the job file keep their line.
    sites("[[site]]\nmatch = \"MPI_Iprobe\"\n");
    refuses(&["sampling.seed=-1"], "./app", &["'sampling.seed' cannot be -1 (--set sampling.seed=-1)"]);
    sites("[[site]]\nmatch = \"MPI_Iprob\"\n");
    refuses(&[], "./app", &["\"MPI_Iprob\" (jobs/calls.toml:2:9)", "\"MPI_Iprobe\""]);
    sites("[sampling]\nseed = 1\n");
    refuses(&[], "./app", &["unknown key 'sampling' (jobs/calls.toml:1:", "valid here: site"]);
    refuses(&["sites=other.toml"], "./app", &["\"other.toml\"", "(--set sites=other.toml)"]);
    sites("sites = \"calls.toml\"\n");
    refuses(&[], "./app", &["(jobs/calls.toml:1:1)", "a file of sites names no other"]);
    refuses(&["sites=./job.toml"], "./app", &["./job.toml", "that is the job file itself"]);
    fs::write(place.at("work/jobs/calls.toml"), [0xff]).unwrap();
    refuses(&[], "./app", &["cannot read \"calls.toml\"", "UTF-8"]);
}

#[test]
fn programs_that_ampl_cannot_see_into_are_named() {
    let place = Place::new();
    let warns = |program: &Path, word: &str| {
        let (code, _, err) = place.said(&["exec", "--", program.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
        assert!(err.contains(word), "{err}");
    };
    if let Some(program) = compiled(&place, LOOP, &["-static"]) {
        warns(&program, "statically linked");
    }
    let own = "int MPI_Init(int *a, char ***b) { return a == 0 && b == 0; }\nint main(void) { return MPI_Init(0, 0) - 1; }\n";
    if let Some(program) = compiled(&place, own, &[]) {
        warns(&program, "contains MPI itself");
        let (_, out, _) = place.said(&["doctor", program.to_str().unwrap()]);
        assert!(out.contains("contains MPI itself"), "{out}");
    }
}

#[test]
fn doctor_reports_in_lines_and_json() {
    let place = Place::new();
    let (code, out, _) = place.said(&["doctor"]);
    assert_eq!(code, 0);
    for word in ["libampl.so", "clock", "journals", "mpirun (Open MPI) 4.1.4"] {
        assert!(out.contains(word), "{out}");
    }
    let (_, out, _) = place.said(&["doctor", "--json", "./app"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["app"]["kind"], "script or unknown");
    assert_eq!(json["launchers"][0]["flavour"], "openmpi");
    refused(&place, &["doctor", "./absent"], 4, "absent");
}
