//! Outcomes of parsing a text of `JOB.toml`, for the tests of the configuration.

use ampl_core::config::{Config, Notice};

/// The lines printed for `text`, which must be wrong.
pub fn refused(text: &str) -> String {
    match Config::parse(text) {
        Err(errors) => errors.render("job.toml"),
        Ok((config, _)) => panic!("accepted: {text}\n{config:?}"),
    }
}

pub fn accepted(text: &str) -> (Config, Vec<Notice>) {
    Config::parse(text).unwrap_or_else(|errors| panic!("{text}\n{}", errors.render("job.toml")))
}

/// `text` gives exactly one error: at `place`, its message holding `what` and its advice `fix`.
#[track_caller]
pub fn one_error(text: &str, place: &str, what: &str, fix: &str) {
    let printed = refused(text);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with("ampl: "), "{printed}");
    let (said, advised) =
        printed.split_once(&format!(" (job.toml:{place}): ")).unwrap_or_else(|| panic!("{printed}"));
    assert!(said.contains(what), "{printed}");
    assert!(advised.contains(fix), "{printed}");
}
