//! A job file of any bytes: settings that read back, or errors of one line each; and an edit of it.

use ampl_core::config::{Config, text};

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    let Ok(text) = text(bytes.to_vec()) else { return };
    let _ = Config::inline_sites(&text, |_| Ok("[[site]]\nmatch = 'MPI_Send'\n".to_owned()));
    match Config::parse(&text) {
        Ok((config, _)) => {
            // The code of source lines is written as a comment: what is read back the first time has none.
            let read = |config: &Config| Config::parse(&config.to_toml()).map(|(again, _)| again);
            let again = read(&config).expect("what is written is read");
            assert_eq!(read(&again).as_ref(), Ok(&again), "{}", config.to_toml());
        }
        Err(errors) => {
            let printed = errors.render("job.toml");
            assert_eq!(printed.lines().count(), errors.0.len(), "{printed}");
        }
    }
    if let Ok(edited) = Config::set(&text, "group.all.error", "3%") {
        let _ = Config::parse(&edited);
    }
}
