use super::Flavour::{Hydra, OpenMpi, Slurm};
use super::*;

fn split(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// `line` with `E` before every program.
fn insert(flavour: Flavour, line: &str) -> Result<String, LauncherError> {
    insert_exec(flavour, &split(line), &split("E"))
        .map(|inserted| inserted.argv.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
}

#[track_caller]
fn before(flavour: Flavour, expected: &str) {
    let line: Vec<&str> = expected.split(' ').filter(|word| *word != "E").collect();
    assert_eq!(insert(flavour, &line.join(" ")).as_deref(), Ok(expected));
}

fn unknown(option: &str) -> Result<String, LauncherError> {
    Err(LauncherError::UnknownOption(option.into()))
}

#[test]
fn open_mpi_options_and_their_values() {
    for line in [
        "mpirun E ./app",
        "mpirun -n 4 E ./app -n 5 --mca x",
        "mpirun -np 4 --oversubscribe --bind-to core --map-by ppr:2:node E ./app a b",
        "mpirun --mca btl self,vader -mca pml ob1 -gmca a b E app",
        "mpirun -x PATH -x A=b --host a,b -H c --hostfile hosts E app",
        "mpirun --n=4 --timeout 9 -wdir /tmp -q -tag-output -output-filename out E app",
        "mpirun --map-by=:OVERSUBSCRIBE --display map --prtemca a b --pmixmca c d --rtos x --np 3 E app",
        "mpirun -n 1 -- E ./app -n",
        "mpirun -N 2 -c 3 E app",
    ] {
        before(OpenMpi, line);
    }
}

#[test]
fn every_app_context_gets_it() {
    before(OpenMpi, "mpirun -n 1 E ./a x : -n 2 -x V E ./b y : E ./c");
    before(Hydra, "mpiexec -genv A B -n 1 E ./a : -env C D -np 2 E ./b -n 3");
    before(Slurm, "srun -n1 E ./a : -n 2 --mem=3 E ./b");
    let inserted =
        insert_exec(OpenMpi, &split("mpirun -n 1 d/a x : -n 2 b"), &split("ampl exec --")).unwrap();
    assert_eq!(inserted.programs, split("d/a b"));
    assert_eq!(inserted.argv, split("mpirun -n 1 ampl exec -- d/a x : -n 2 ampl exec -- b"));
}

#[test]
fn hydra_options_and_their_values() {
    for line in [
        "mpiexec -n 4 E ./app -n 9",
        "mpiexec -genv A B -genvlist C,D -genvnone -f hosts -ppn 2 -n 4 E ./app",
        "mpiexec --np=4 -bind-to core:2 -map-by socket -launcher ssh -iface eth0 -l E app",
        "mpiexec -hosts a,b -env X Y -wdir /tmp -prepend-rank -outfile-pattern o.%r E app",
        "mpirun -perhost 2 -print-rank-map -genvall -bootstrap slurm E app",
        "mpiexec -gpus-per-proc 1 -memory-alloc-kinds system -rankmap 0,1 -hybrid-hosts -n 2 E app",
    ] {
        before(Hydra, line);
    }
}

#[test]
fn srun_options_and_their_values() {
    for line in [
        "srun E ./app",
        "srun -n4 -N 2 -lu --cpu-bind=cores --mpi pmix E ./app -n",
        "srun --ntasks=4 --ntasks-per-node 2 -p debug -t 10 --exclusive --kill-on-bad-exit=1 E ./app",
        "srun -K1 -I -k --pty --nice=3 -luN 3 -lN3 E ./app",
        "srun --export=ALL,A=b -c 2 -- E ./app",
    ] {
        before(Slurm, line);
    }
}

#[test]
fn what_is_not_certain_is_refused() {
    assert_eq!(insert(OpenMpi, "mpirun --new-option 3 ./app"), unknown("--new-option"));
    assert_eq!(insert(OpenMpi, "mpirun -dvm ./app"), unknown("-dvm"));
    assert_eq!(insert(OpenMpi, "mpirun -genv A B ./app"), unknown("-genv"));
    assert_eq!(insert(Hydra, "mpiexec --mca a b ./app"), unknown("--mca"));
    assert_eq!(insert(Hydra, "mpiexec -trace ./app"), unknown("-trace"));
    assert_eq!(insert(Slurm, "srun -y ./app"), unknown("-y"));
    assert_eq!(insert(Slurm, "srun -né ./app").as_deref(), Ok("srun -né E ./app"));
    assert_eq!(insert(Slurm, "srun --np 3 ./app"), unknown("--np"));
    let file = |option: &str| Err(LauncherError::ProgramsInFile(option.into()));
    assert_eq!(insert(OpenMpi, "mpirun --app file"), file("--app"));
    assert_eq!(insert(Hydra, "mpiexec -configfile f"), file("-configfile"));
}

#[test]
fn a_program_must_follow() {
    for line in ["mpirun", "mpirun -n 4", "mpirun -n 4 --", "mpirun : ./b"] {
        assert_eq!(insert(OpenMpi, line), Err(LauncherError::NoProgram(1)), "{line}");
    }
    assert_eq!(insert(OpenMpi, "mpirun ./a :"), Err(LauncherError::NoProgram(2)));
    assert_eq!(insert(OpenMpi, "mpirun -n"), Err(LauncherError::NoValue("-n".into())));
    assert_eq!(insert(OpenMpi, "mpirun -mca a"), Err(LauncherError::NoValue("-mca".into())));
    assert_eq!(insert_exec(OpenMpi, &[], &[]), Err(LauncherError::NoProgram(1)));
}

#[test]
fn a_file_of_programs_is_rewritten() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"0 ./a x\n1-3 ./b\n").unwrap();
    let line = format!("srun -n 4 --multi-prog {}", file.path().display());
    let inserted = insert_exec(Slurm, &split(&line), &split("E")).unwrap();
    assert_eq!(inserted.argv, split(&line));
    assert_eq!(inserted.files, [(4, "0 E ./a x\n1-3 E ./b\n".to_owned())]);
    assert_eq!(inserted.programs, split("./a ./b"));
    assert!(matches!(insert(Slurm, "srun --multi-prog /none/f"), Err(LauncherError::Unreadable { .. })));
}

#[test]
fn words_that_are_not_utf8_are_programs_or_refused() {
    use std::os::unix::ffi::OsStrExt;
    let word = OsStr::from_bytes(b"./\xff").to_owned();
    let argv = [split("mpirun -n 2"), vec![word.clone()]].concat();
    assert_eq!(insert_exec(OpenMpi, &argv, &split("E")).unwrap().programs, [word]);
    let option = OsStr::from_bytes(b"-\xff").to_owned();
    assert!(insert_exec(OpenMpi, &[split("mpirun"), vec![option]].concat(), &[]).is_err());
}

#[test]
fn no_option_is_listed_twice() {
    for flavour in [OpenMpi, Hydra, Slurm] {
        let options = flavour.options();
        let mut names: Vec<&str> = [options.flags, options.one, options.two, options.files]
            .iter()
            .flat_map(|names| names.split_ascii_whitespace())
            .collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{flavour:?} {twice:?}");
    }
}

#[test]
fn flavours_are_told_by_name_or_version() {
    assert_eq!(Flavour::by_name("orterun"), Some(OpenMpi));
    assert_eq!(Flavour::by_name("mpiexec.hydra"), Some(Hydra));
    assert_eq!(Flavour::by_name("mpirun"), None);
    assert!(Flavour::may_be("mpirun") && Flavour::may_be("mpiexec.gforker") && !Flavour::may_be("mpirunner"));
    assert!(!Flavour::may_be("app"));
    assert_eq!(Flavour::by_version("mpirun (Open MPI) 5.0.3\n"), Some(OpenMpi));
    assert_eq!(Flavour::by_version("mpirun.openmpi (OpenRTE) 4.1.4\n"), Some(OpenMpi));
    assert_eq!(Flavour::by_version("HYDRA build details:\n    Version: 4.0.2\n"), Some(Hydra));
    assert_eq!(Flavour::by_version("Intel(R) MPI Library for Linux* OS, Version 2021.9\n"), Some(Hydra));
    assert_eq!(Flavour::by_version("something else 1.0"), None);
}
