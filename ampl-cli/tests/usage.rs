//! Command lines and job files as people write them; no MPI is needed.

use std::fs;

mod place;
use place::{Place, output, refused, said};

#[test]
fn binary_job_files_give_a_message() {
    let place = Place::new();
    let huge = vec![b'#'; (1 << 24) + 1];
    for (bytes, what) in [
        (&b"\x7fELF\x02\x01\x01\0\0\0"[..], "it is a program"),
        (&b"seed = 1\n\0\0\n"[..], "it is a binary file"),
        (&b"\x1f\x8b\x08\0"[..], "it is a compressed file"),
        (&b"\xff\xfe[\0a\0]\0"[..], "it is text in UTF-16"),
        (&huge[..], "it has more than 16 MiB"),
    ] {
        fs::write(place.at("work/job"), bytes).unwrap();
        for form in
            [&["exec", "-c", "job", "--", "./app"][..], &["run", "-c", "job", "--", "mpirun", "./app"]]
        {
            refused(&place, form, 2, what);
            refused(&place, form, 2, "(job): name a readable TOML file");
        }
    }
    // What stands in the text is shown as far as it is readable.
    fs::write(place.at("work/job"), format!("\"\\u001b[31m{}\" = 1\n", "x".repeat(200))).unwrap();
    let (_, _, err) = place.said(&["exec", "-c", "job", "--", "./app"]);
    assert!(err.len() < 300 && !err.contains('\x1b'), "{err:?}");
}

/// As without them: the words before the launcher stay where they are.
#[test]
fn programs_that_start_the_launcher_or_the_program_are_looked_through() {
    let place = Place::new();
    place.script("work/show", "echo \"$LD_PRELOAD $AMPL_DIR $*\"; mkdir \"$AMPL_DIR\"");
    let library = place.at("lib/libampl.so").display().to_string();
    let shown = |before: &[&str], between: &[&str]| {
        let mut words = vec!["run", "--set", "output.dir=r-{app}", "--"];
        words.extend(before.iter().chain(&["mpirun", "-n", "2"]).chain(between).chain(&["./show", "x"]));
        let (code, out, err) = place.said(&words);
        assert_eq!(code, 0, "{words:?}: {err}");
        out.trim().to_owned()
    };
    for (before, name) in [
        (&["timeout", "20"][..], "r-show"),
        (&["nice", "-n", "1", "env", "A=b"], "r-show-2"),
        (&["timeout", "-k", "5", "--signal=INT", "20", "nohup"], "r-show-3"),
    ] {
        assert_eq!(shown(before, &[]), format!("{library} {} x", place.at("work").join(name).display()));
    }
    // The name is the program's, not that of what starts it.
    let expected =
        |preload: &str, name: &str| format!("{preload} {} x", place.at("work").join(name).display());
    assert_eq!(shown(&[], &["timeout", "9"]), expected(&library, "r-show-4"));
    let both = format!("{library}:/own/lib.so");
    assert_eq!(shown(&[], &["env", "LD_PRELOAD=/own/lib.so"]), expected(&both, "r-show-5"));
    assert_eq!(shown(&[], &["env", "-u", "LD_PRELOAD", "nice"]), expected(&library, "r-show-6"));
    let emptied = ["env", "-i", "PATH=/usr/bin:/bin", "LD_PRELOAD=/own/lib.so"];
    assert_eq!(shown(&["env", "LD_PRELOAD=/gone.so"], &emptied), expected(&both, "r-show-7"));
}

#[test]
fn scripts_that_replace_what_is_preloaded_are_named() {
    let place = Place::new();
    place.script("work/wrap", "# starts it\nLD_PRELOAD=/own/lib.so exec \"$@\"");
    let (code, out, err) = place.said(&["run", "-o", "r", "--", "mpirun", "-n", "2", "./wrap", "./app", "y"]);
    assert_eq!((code, out.as_str()), (0, "app y\n"));
    assert!(err.contains("LD_PRELOAD is set anew or unset (./wrap, line 3)"), "{err}");
    assert!(err.contains("a script set LD_PRELOAD anew"), "{err}");
    let mut later = place.command(&["exec", "--", "./wrap", "./app"]);
    let (_, _, err) = said(&output(later.env("PMI_RANK", "1")));
    assert!(!err.contains("set anew"), "{err}");
    let inline = "LD_PRELOAD=/own/lib.so:$LD_PRELOAD exec ./app";
    assert!(!place.said(&["exec", "--", "sh", "-c", inline]).2.contains("set anew"));
}

#[test]
fn command_lines_that_are_meant_are_taken_or_put_right() {
    let place = Place::new();
    for form in [
        &["run", "-o", "r", "mpirun", "-n", "2", "./app", "-n", "--", "x"][..],
        &["run", "-o", "r", "--", "mpirun", "-n", "2", "./app", "-n", "--", "x"],
    ] {
        let (code, out, err) = place.said(form);
        assert_eq!((code, out.as_str()), (0, "app -n -- x\n"), "{err}");
    }
    assert_eq!(place.said(&["exec", "./app", "-o", "y"]).1, "app -o y\n");
    refused(&place, &["run", "-n", "2", "./app"], 2, "write: ampl run -- mpirun -n 2 ./app");
    let options =
        ["run", "-o", "r", "--set", "sampling.seed=3", "-np", "2", "--oversubscribe", "./app", "a b"];
    let expected = "ampl run -o r --set sampling.seed=3 -- mpirun -np 2 --oversubscribe ./app \"a b\"";
    refused(&place, &options, 2, expected);
    refused(&place, &["exec", "-n4", "./app"], 2, "write: mpirun -n4 ./app with 'ampl exec --' before");
    refused(&place, &["run", "--", "mpirn", "-n", "2", "./app"], 2, "did you mean 'mpirun'?");
    refused(&place, &["run", "--", "timeout", "9", "mpiexc", "./app"], 2, "did you mean 'mpiexec'?");
    refused(&place, &["run", "--", "./app", "-x"], 2, "'ampl run -- mpirun -n 4 ./app -x'");
    refused(&place, &["run", "./absent"], 2, "there is no './absent'");
    // Options that are keys of job files, and names that are nearly those of commands.
    for form in [&["run", "--verify", "--", "mpirun", "./app"][..], &["exec", "--verify=true", "--", "./app"]]
    {
        refused(&place, form, 2, "write '--set output.verify=VALUE'");
    }
    refused(&place, &["run", "--max-overhead", "5%", "./app"], 2, "--set agent.max_overhead=VALUE");
    refused(&place, &["rn", "--", "mpirun", "./app"], 2, "did you mean 'run'?");
    refused(&place, &["decode", "--sideways"], 2, "see 'ampl decode --help'");
}

/// As shells and `man` read them.
#[test]
fn every_command_has_a_page_and_completions() {
    let place = Place::new();
    let (code, _, err) = place.said(&["pages", "share"]);
    assert_eq!(code, 0, "{err}");
    let all = place.said(&["--help", "--all"]).1;
    let names = all.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())).collect();
    assert!(names.len() > 24 && !names.contains(&"pages"), "{names:?}");
    let text = |path: String| fs::read_to_string(place.at("work/share").join(path)).unwrap();
    let shells = [
        "bash-completion/completions/ampl",
        "zsh/site-functions/_ampl",
        "fish/vendor_completions.d/ampl.fish",
    ];
    for name in names.iter().filter(|&&name| name != "ampl") {
        let page = text(format!("man/man1/ampl-{name}.1"));
        assert!(page.contains(".SH NAME") && page.contains("Example"), "{name}: {page}");
        assert!(shells.iter().all(|shell| text((*shell).into()).contains(name)), "{name}");
    }
    assert!(text("man/man1/ampl.1".into()).contains("ampl\\-decode"));
    refused(&place, &["pages", "/proc/none"], 1, "name a directory that you may write");
}

#[test]
fn fractions_may_be_percentages() {
    let place = Place::new();
    let text = "[trace]\ntime_error = '10%'\n[agent]\nmax_overhead = '0.5 %'\n[[site]]\nmatch = 'MPI_Send'\nerror = '2%'\n\
                confidence = '95%'\n[[group]]\nname = 'A'\nmembers = '0-3'\nconfidence = '99%'\nerror = 0.03\n";
    fs::write(place.at("work/job.toml"), text).unwrap();
    for set in ["group.A.error=5%", "trace.time_error=0%", "agent.max_overhead=2%", "group.A.error=0.05"] {
        let (code, _, err) =
            place.said(&["exec", "--dry-run", "-c", "job.toml", "--set", set, "--", "./app"]);
        assert_eq!((code, err.as_str()), (0, ""), "{set}");
    }
    for set in
        ["group.A.error=100%", "trace.time_error=-1%", "group.A.confidence=many", "site.0.error=5percent"]
    {
        refused(&place, &["exec", "-c", "job.toml", "--set", set, "--", "./app"], 2, "cannot be");
    }
}
