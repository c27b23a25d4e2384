//! Texts of job files, and keys of `--set`.

use std::io::Read;
use std::path::{Path, PathBuf};

use ampl_core::config::{Config, LONGEST, SitesFault, table_path};

use crate::failure::{Failure, Kind};

/// `text` with the tables of the file in `sites`, which is relative to `file`; without a file, to the working directory.
///
/// `name` is what errors call the text; `settings` are those of `--set`, applied already.
///
/// # Errors
/// A usage [`Failure`] for what cannot be read or is no table of sites.
pub fn with_sites(
    text: &str,
    file: Option<&Path>,
    name: &str,
    settings: &[String],
) -> Result<String, Failure> {
    let beside = file.and_then(Path::parent).map_or_else(PathBuf::new, Path::to_owned);
    let read = |named: &str| {
        let sites = beside.join(named);
        let same = |job: &Path| {
            sites.canonicalize().ok().is_some_and(|sites| job.canonicalize().ok() == Some(sites))
        };
        if file.is_some_and(same) {
            return Err("that is the job file itself".to_owned());
        }
        text_of(&sites)
    };
    Config::inline_sites(text, read).map_err(|fault| {
        let lines = match fault {
            SitesFault::Here(error) => match setting_of("sites", settings) {
                Some(setting) => error.render_at(&format!("--set {setting}")),
                None => error.render(name),
            },
            SitesFault::There { file, errors } => errors.render(&beside.join(file).display().to_string()),
        };
        Failure::printed(Kind::Usage, lines)
    })
}

/// The text in `path`, or why there is none.
pub fn text_of(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| error.to_string();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    ampl_core::config::text(bytes)
}

/// The key of `KEY=VALUE`.
pub fn key_of(setting: &str) -> &str {
    setting.split('=').next().unwrap_or_default().trim()
}

/// The last `--set` that touched the key `path`, or something inside the unknown table `path`.
pub fn setting_of<'a>(path: &str, settings: &'a [String]) -> Option<&'a str> {
    settings.iter().rev().map(String::as_str).find(|setting| {
        let key = table_path(key_of(setting));
        key == path || key.strip_prefix(path).is_some_and(|rest| !path.is_empty() && rest.starts_with('.'))
    })
}
