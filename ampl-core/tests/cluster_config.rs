//! `group.stratify` and `group.k`: read by commands that read runs, refused by a job that runs.

use ampl_core::config::{Config, GroupStrata};

fn job(lines: &str) -> String {
    format!("[[group]]\nname = \"fluid\"\nmembers = \"0-9\"\n{lines}")
}

fn offline(lines: &str) -> Result<Vec<GroupStrata>, String> {
    let found = Config::parse_offline(&job(lines));
    found.map(|(_, strata, _)| strata).map_err(|errors| errors.render("job.toml"))
}

fn strata(k: Option<u32>) -> Result<Vec<GroupStrata>, String> {
    Ok(vec![GroupStrata { group: "fluid".into(), k }])
}

#[test]
fn offline_groups_can_be_divided() {
    assert_eq!(offline(""), Ok(vec![]));
    assert_eq!(offline("stratify = 'off'\nk = 'auto'"), Ok(vec![]));
    assert_eq!(offline("stratify = 'k-medoids'"), strata(None));
    assert_eq!(offline("stratify = 'k-medoids'\nk = 'auto'"), strata(None));
    assert_eq!(offline("stratify = 'k-medoids'\nk = 3"), strata(Some(3)));
    let (config, ..) = Config::parse_offline(&job("stratify = 'k-medoids'")).unwrap();
    assert_eq!(config, Config::parse(&job("")).unwrap().0);
}

#[test]
fn what_makes_no_sense_is_refused_offline_too() {
    for (lines, place, words) in [
        ("k = 3", "job.toml:4:5", "stratify = \"k-medoids\""),
        ("stratify = 'k-medoids'\nk = 0", "job.toml:5:5", "from 1"),
        ("stratify = 'k-medoids'\nk = 11", "job.toml:5:5", "members"),
        ("stratify = 'k-medoids'\nk = 'all'", "job.toml:5:5", "\"auto\""),
        ("stratify = 'k-mediods'", "job.toml:4:12", "k-medoids"),
    ] {
        let error = offline(lines).unwrap_err();
        assert!(error.contains(place) && error.contains(words), "{error}");
    }
}

#[test]
fn a_job_that_runs_refuses_both() {
    for lines in ["stratify = 'k-medoids'", "k = 3"] {
        let errors = Config::parse(&job(lines)).unwrap_err().render("job.toml");
        assert!(errors.contains("not in this version") && errors.contains("ampl strata"), "{errors}");
    }
    Config::parse(&job("stratify = 'off'\nk = 'auto'")).unwrap();
}
