//! Layers of configuration as a user meets them: built in, the site's, job file, `--set`.

use std::fs;

mod place;
use place::{Place, refused, said};

/// An installation with a file of the site's.
fn with_site(text: &str) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.at("etc/ampl")).unwrap();
    fs::write(place.at("etc/ampl/site.toml"), text).unwrap();
    place
}

/// Rows of `ampl doctor --config --json` with these words.
fn settings(place: &Place, words: &[&str]) -> Vec<serde_json::Value> {
    let (code, out, err) = place.said(&[&["doctor", "--config", "--json"], words].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    serde_json::from_str::<Vec<serde_json::Value>>(&out).unwrap()
}

/// Value and layer of one setting, and `true` where it is locked.
fn row<'r>(rows: &'r [serde_json::Value], key: &str) -> (&'r str, &'r str, bool) {
    let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}: {rows:?}"));
    (row["value"].as_str().unwrap(), row["layer"].as_str().unwrap(), row["locked"] == true)
}

#[test]
fn every_layer_goes_above_the_ones_before() {
    let place = with_site(
        "[sampling]\nseed = 1\nwindows_per_update = 2\nfloor = 20\n[agent]\nmax_overhead = \"2%\"\n\
         [[group]]\nname = \"Front\"\nmembers = \"0-3\"\n[locked]\nkeys = [\"agent.max_overhead\"]\n",
    );
    fs::write(place.at("work/job.toml"), "[sampling]\nseed = 3\nwindows_per_update = 5\n").unwrap();
    let words = ["-c", "job.toml", "--set", "sampling.seed=9", "--set", "group.Front.error=0.05"];
    let rows = settings(&place, &words);
    assert_eq!(row(&rows, "sampling.seed"), ("9", "set", false));
    assert_eq!(row(&rows, "sampling.windows_per_update"), ("5", "job", false));
    assert_eq!(row(&rows, "sampling.floor"), ("20", "site", false));
    assert_eq!(row(&rows, "agent.max_overhead"), ("0.02", "site", true));
    assert_eq!(row(&rows, "sampling.partners"), ("\"off\"", "built-in", false));
    assert_eq!(row(&rows, "group.Front.error"), ("0.05", "set", false));
    assert_eq!(row(&rows, "group.Front.members"), ("\"0-3\"", "site", false));
    // `AMPL_CONFIG` stands in for -c.
    let mut command = place.command(&["doctor", "--config"]);
    let (code, out, _) = said(&place::output(command.env("AMPL_CONFIG", "job.toml")));
    assert_eq!(code, 0);
    let line = |key: &str| out.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{out}"));
    assert!(line("sampling.seed ").ends_with("  job.toml"), "{out}");
    assert!(line("sampling.partners ").ends_with("  built in"), "{out}");
    assert!(line("agent.max_overhead ").ends_with("etc/ampl/site.toml (locked)"), "{out}");
    // The program gets all layers, with and without a job file.
    for (words, seed) in [(&["-c", "job.toml"][..], "seed = 3"), (&[][..], "seed = 1")] {
        let (code, out, _) = place.said(&[&["exec", "--dry-run"], words, &["--", "./app"]].concat());
        assert_eq!(code, 0);
        assert!(out.contains("AMPL_CONFIG=") && out.contains(seed) && out.contains("floor = 20"), "{out}");
        assert!(!out.contains("locked"), "{out}");
    }
}

#[test]
fn a_locked_setting_cannot_be_changed() {
    let place = with_site(
        "# The centre's.\n[agent]\nmax_overhead = \"2%\"\n[output]\ndir = \"runs-{jobid}\"\n\
         [locked]\nkeys = [\"agent.max_overhead\", \"hooks\", \"output.dir\"]\n",
    );
    let file = place.at("etc/ampl/site.toml").display().to_string();
    fs::write(place.at("work/job.toml"), "[agent]\nmax_overhead = 0.5\n").unwrap();
    let started = ["--", "mpirun", "-n", "1", "./app"];
    for (words, key, fix) in [
        (&["-c", "job.toml"][..], "agent.max_overhead", "take it out of job.toml"),
        (
            &["--set", "agent.max_overhead=0.5"],
            "agent.max_overhead",
            "leave out --set agent.max_overhead=0.5",
        ),
        (&["--hooks", "functions"], "hooks", "leave out --set hooks.functions=true"),
        (&["-o", "elsewhere"], "output.dir", "leave out -o"),
    ] {
        let message = format!("ampl: '{key}' is locked by the site ({file}): {fix}\n");
        for form in
            [&[&["run"], words, &started[..]].concat(), &[&["exec"], words, &["--", "./app"]].concat()]
        {
            assert_eq!(place.said(form), (2, String::new(), message.clone()));
        }
    }
    for form in [&[&["run"], &started[..]].concat()[..], &["exec", "--", "./app"]] {
        let named = said(&place::output(place.command(form).env("AMPL_DIR", "x")));
        assert_eq!(named.0, 2, "{named:?}");
        assert!(named.2.contains("unset AMPL_DIR"), "{named:?}");
    }
    // Within a job of `ampl run`, and before the program.
    let named = said(&place::output(
        place.command(&["exec", "--checked", "-o", "x", "--", "./app"]).env("AMPL_CONFIG", "job.toml"),
    ));
    assert_eq!(named.0, 2, "{named:?}");
    assert!(
        named.2.contains(&format!("is locked by the site ({file}): take it out of job.toml")),
        "{named:?}"
    );
    let (code, _, err) = place.said(&["exec", "--", "env", "A=1", "AMPL_CONFIG=job.toml", "./app"]);
    assert!(code == 2 && err.contains(&file) && err.contains("AMPL_CONFIG before the program"), "{err}");
    // The same value is no change, and what is not locked may be set.
    let same = ["--set", "agent.max_overhead=0.02", "--set", "sampling.seed=5"];
    let (code, out, err) = place.said(&[&["exec"], &same[..], &["--", "./app", "x"]].concat());
    assert!(code == 0 && out == "app x\n" && !err.contains("locked"), "{out}{err}");
    // `run` names the directory for its ranks, and an exec may stand behind another.
    let (code, out, err) = place.said(&[&["run"], &same[..], &started[..]].concat());
    assert!(code == 0 && out == "app\n" && !err.contains("locked"), "{out}{err}");
    let ampl = place.at("bin/ampl").display().to_string();
    let (code, out, err) = place.said(&["exec", "--", &ampl, "exec", "--", "./app"]);
    assert!(code == 0 && out == "app\n" && !err.contains("locked"), "{out}{err}");
}

#[test]
fn a_site_s_file_that_is_wrong_is_named() {
    for (text, what) in [
        ("[sampling]\n\nsead = 1\n", "site.toml:3:1): did you mean 'seed'?"),
        ("[locked]\nkeys = [\n \"agent.overhead\"]\n[sampling]\nseed = 1\n", "site.toml:3:2)"),
        ("sites = \"none.toml\"\n", "cannot read \"none.toml\""),
        ("\x7fELF", "it is a program"),
    ] {
        refused(&with_site(text), &["exec", "--", "./app"], 2, what);
        refused(&with_site(text), &["doctor", "--config"], 2, "site.toml");
    }
    // A fault of the job keeps its line; one that only both layers have names both.
    let place = with_site("[sampling]\nsummaries = \"sampled\"\n");
    fs::write(place.at("work/job.toml"), "\n[sampling]\nsead = 3\n").unwrap();
    refused(&place, &["exec", "-c", "job.toml", "--", "./app"], 2, "(job.toml:3:1)");
    fs::write(place.at("work/job.toml"), "[sampling]\nselection = \"retrospective\"\n").unwrap();
    let both = format!("(job.toml above {})", place.at("etc/ampl/site.toml").display());
    refused(&place, &["exec", "-c", "job.toml", "--", "./app"], 2, &both);
    // A job file has no locks.
    fs::write(place.at("work/job.toml"), "[locked]\nkeys = [\"hooks\"]\n").unwrap();
    refused(&place, &["exec", "-c", "job.toml", "--", "./app"], 2, "unknown key 'locked'");
}

#[test]
fn a_recipe_goes_by_its_name() {
    let place = Place::new();
    fs::create_dir_all(place.at("share/configs")).unwrap();
    fs::write(place.at("share/configs/quiet.toml"), "[sampling]\nseed = 77\n").unwrap();
    for name in ["quiet", "quiet.toml"] {
        assert_eq!(row(&settings(&place, &["-c", name]), "sampling.seed"), ("77", "job", false));
    }
    let (code, out, err) = place.said(&["run", "-c", "quiet", "--", "mpirun", "-n", "1", "./app"]);
    assert!(code == 0 && out == "app\n", "{out}{err}");
    // A file goes first; a directory of that name is none.
    fs::create_dir(place.at("work/quiet")).unwrap();
    assert_eq!(row(&settings(&place, &["-c", "quiet"]), "sampling.seed"), ("77", "job", false));
    fs::remove_dir(place.at("work/quiet")).unwrap();
    fs::write(place.at("work/quiet"), "[sampling]\nseed = 5\n").unwrap();
    assert_eq!(row(&settings(&place, &["-c", "quiet"]), "sampling.seed"), ("5", "job", false));
    refused(&place, &["exec", "-c", "loud", "--", "./app"], 2, "or a recipe: quiet");
    refused(&place, &["doctor", "-c", "quiet"], 2, "--config");
}
