//! `group.stratify` and `group.k`: which groups are to be divided, and where that makes no sense.

use ampl_core::config::{Config, GroupStrata};

fn job(lines: &str) -> String {
    format!("[[group]]\nname = \"fluid\"\nmembers = \"0-9\"\n{lines}")
}

fn divided(lines: &str) -> Result<Vec<GroupStrata>, String> {
    let found = Config::parse(&job(lines));
    found.map(|(config, _)| config.strata).map_err(|errors| errors.render("job.toml"))
}

fn strata(k: Option<u32>) -> Result<Vec<GroupStrata>, String> {
    Ok(vec![GroupStrata { group: "fluid".into(), k }])
}

#[test]
fn groups_can_be_divided() {
    assert_eq!(divided(""), Ok(vec![]));
    assert_eq!(divided("stratify = 'off'\nk = 'auto'"), Ok(vec![]));
    assert_eq!(divided("stratify = 'k-medoids'"), strata(None));
    assert_eq!(divided("stratify = 'k-medoids'\nk = 'auto'"), strata(None));
    assert_eq!(divided("stratify = 'k-medoids'\nk = 3"), strata(Some(3)));
    let (config, notices) = Config::parse(&job("stratify = 'k-medoids'\nk = 3")).unwrap();
    assert_eq!((config.divides("fluid"), notices.len()), (Some(&strata(Some(3)).unwrap()[0]), 0));
    assert_eq!(config.divides("solid"), None);
    // It is in run.toml, and reads back.
    assert_eq!(Config::parse(&config.to_toml()).unwrap().0, config);
    let auto = Config::parse(&job("stratify = 'k-medoids'")).unwrap().0;
    assert_eq!(Config::parse(&auto.to_toml()).unwrap().0, auto);
    // Nothing else is any different.
    assert_eq!(Config { strata: vec![], ..config }, Config::parse(&job("")).unwrap().0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (lines, place, words) in [
        ("k = 3", "job.toml:4:5", "stratify = \"k-medoids\""),
        ("stratify = 'k-medoids'\nk = 0", "job.toml:5:5", "from 1"),
        ("stratify = 'k-medoids'\nk = 11", "job.toml:5:5", "members"),
        ("stratify = 'k-medoids'\nk = 9", "job.toml:5:5", "from 1 to 8"),
        ("stratify = 'off'\nk = 3", "job.toml:5:5", "leave k out"),
        ("stratify = 'k-medoids'\nk = 'all'", "job.toml:5:5", "\"auto\""),
        ("stratify = 'k-mediods'", "job.toml:4:12", "k-medoids"),
        ("stratify = 'k-medoids'\nsample_size = 5", "job.toml:4:12", "group.sample_size"),
        ("stratify = 'k-medoids'\n[sampling]\nsummaries = 'sampled'", "job.toml:4:12", "\"census\""),
        ("stratify = 'k-medoids'\n[sampling]\npartners = 'keep'", "job.toml:4:12", "partners = \"off\""),
    ] {
        let error = divided(lines).unwrap_err();
        assert!(error.contains(place) && error.contains(words), "{error}");
    }
    assert!(divided("stratify = 'off'\nsample_size = 5").is_ok());
}
