//! `ampl history` over an archive of made-up records.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

mod place;
use place::{Place, refused};
use serde_json::{Value, json};

/// A record; `slow` is what the elapsed time is multiplied by, `build` the program's contents.
fn write(place: &Place, file: &str, key: &str, started: u64, slow: f64, build: &str) {
    let path = place.at("work/archive").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let record = json!({
        "schema": 1, "key": key, "started_ns": started * 1_000_000_000, "user": "ann", "app": key, "job": file,
        "ranks": 64, "host_count": 2, "elapsed_ns": (100e9 * slow) as u64, "calls": 5, "later": {"field": 1},
        "efficiency": {"parallel": 0.8, "load_balance": 0.9, "communication": 0.89, "coverage": 1.0, "basis": "census"},
        "completeness": {"complete": true, "reported": 64},
        "metadata": [{"kind": "program", "name": "", "value": build}, {"kind": "module", "name": "gcc", "value": "12"}],
    });
    fs::write(path, record.to_string()).unwrap();
}

/// A number in [-1, 1) that looks random.
fn noise(seed: u64) -> f64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

fn list(place: &Place, words: &[&str]) -> Vec<Value> {
    let (code, out, err) = place.said(&[&["history", "archive", "--json"], words].concat());
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_slowdown_from_run_61_of_90_is_dated() {
    let place = Place::new();
    for seed in 0..5 {
        for run in 0..90_u64 {
            let (late, build) = if run >= 60 { (1.1, "new") } else { (1.0, "old") };
            let slow = late * (1.0 + 0.05 * noise(seed * 1000 + run));
            write(
                &place,
                &format!("k{seed}/{run}.json"),
                &format!("k{seed}"),
                1_700_000_000 + run * 3600,
                slow,
                build,
            );
        }
        let like = format!("archive/k{seed}/3.json");
        let rows = list(&place, &["--like", &like]);
        assert_eq!(rows.len(), 90);
        let marked: Vec<usize> = (0..90).filter(|&at| !rows[at]["change"].is_null()).collect();
        let [at] = marked[..] else { panic!("{seed}: {marked:?}") };
        assert!(at.abs_diff(60) <= 2, "{seed}: {at}");
        let change = &rows[at]["change"];
        assert!((change["change"].as_f64().unwrap() - 0.1).abs() < 0.03, "{change}");
        if at == 60 {
            assert_eq!(change["differences"], json!(["program: new, before old"]), "{change}");
        }
        // Others of the archive are not in it, and are listed without marks.
        assert_eq!(list(&place, &["--app", &format!("k{seed}")]).len(), 90);
    }
    let all = list(&place, &["--user", "ann"]);
    assert!(all.len() == 450 && all.iter().all(|row| row["change"].is_null()));
    assert_eq!(list(&place, &["--user", "bob"]).len(), 0);
    // From 2023-11-16 on: 23.3 hours after the first run.
    assert_eq!(list(&place, &["--since", "2023-11-16", "--app", "k0"]).len(), 64);
    let (code, out, err) = place.said(&["history", "archive", "--like", "archive/k0/3.json"]);
    assert!(
        code == 0 && out.contains("slower from here on") && out.contains("program: new, before old"),
        "{out}"
    );
    assert!(err.contains("1 change of the elapsed time in 90 finished runs"), "{err}");
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    refused(&place, &["history", "archive"], 4, "cannot read the archive");
    write(&place, "1.json", "k", 1_700_000_000, 1.0, "b");
    fs::write(place.at("work/archive/bad.json"), "{\"schema\": 9}").unwrap();
    let (code, out, err) = place.said(&["history", "archive"]);
    assert!(code == 0 && out.lines().count() == 2, "{out}{err}");
    assert!(
        err.contains("1 files are no records") && err.contains("bad.json") && err.contains("schema is 9"),
        "{err}"
    );
    let like = || place.said(&["history", "archive", "--like", "archive/1.json"]).2;
    assert!(!like().contains("other programs or inputs"), "{}", like());
    let record = fs::read_to_string(place.at("work/archive/1.json")).unwrap();
    let private = record.replace("\"schema\":1", "\"schema\":1,\"arguments_private\":true");
    fs::write(place.at("work/archive/1.json"), private).unwrap();
    assert!(like().contains("other programs or inputs may be among these"), "{}", like());
    refused(&place, &["history", "archive", "--since", "soon"], 2, "'soon' is no time");
    refused(&place, &["history", "archive", "--like", "archive/bad.json"], 3, "no record");
    refused(&place, &["history", "archive", "--like", "none"], 4, "none");
    refused(&place, &["history", "archive", "--parquet", "-o", "archive"], 2, "exists");
    refused(&place, &["history", "archive", "-o", "x"], 2, "--parquet");
    let (code, out, err) = place.said(&["history", "archive", "--parquet"]);
    assert!(code == 0 && out.is_empty(), "{out}{err}");
    let table = fs::read(place.at("work/ampl-history/month=2023-11/part-0.parquet")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
}

#[test]
fn records_of_others_are_counted_and_are_read_when_they_may_be() {
    let place = Place::new();
    (0..4).for_each(|at| write(&place, &format!("ann/{at}.json"), "k", 1_700_000_000 + at, 1.0, "old"));
    let mode = |name: &str, mode| {
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    // Another user, whose files these are not.
    let list = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(place.at("bin/ampl")).args(["history", "--json"]).arg(place.at("work/archive"));
        let done = command.env("XDG_CACHE_HOME", place.at("work/cache")).output().unwrap();
        let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
        let rows = serde_json::from_str::<Vec<Value>>(&out).map_or(usize::MAX, |rows| rows.len());
        (rows, err)
    };
    fs::create_dir(place.at("work/cache")).unwrap();
    ["work/cache", "work"].iter().for_each(|name| mode(name, 0o777));
    mode(".", 0o755);
    let (rows, err) = list();
    if rows == usize::MAX {
        eprintln!("SKIPPED: no other user can be had here (root can): {err}");
        return;
    }
    assert_eq!((rows, err.as_str()), (4, ""));
    mode("work/archive/ann/1.json", 0o600);
    mode("work/archive/ann/2.json", 0o600);
    fs::remove_dir_all(place.at("work/cache/ampl")).unwrap();
    let (rows, err) = list();
    assert!(rows == 2 && err.contains("2 records cannot be read"), "{rows}: {err}");
    // The owner's list is no secret's way out.
    assert_eq!(place.said(&["history", "archive"]).0, 0);
    assert_eq!(list().0, 2);
    mode("work/archive/ann/1.json", 0o644);
    mode("work/archive/ann/2.json", 0o644);
    assert_eq!(list(), (4, String::new()));
    mode("work/archive/ann", 0o700);
    let (rows, err) = list();
    assert!(rows == 0 && err.contains("1 directory cannot be read"), "{rows}: {err}");
}
