//! Files of an installation: the site's settings and the recipes.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ampl_core::config::{Config, Notice, SiteLayer};

use crate::failure::{Failure, Kind};
use crate::job_text::{text_of, with_sites};

/// Settings for everybody who uses this installation.
#[derive(Debug)]
pub struct SiteFile {
    /// The file.
    pub path: PathBuf,
    /// Its settings, the file of its `sites` in its place, and its locks.
    pub layer: SiteLayer,
    /// The settings alone.
    pub config: Config,
    /// Settings that do not do quite what they say.
    pub notices: Vec<Notice>,
}

impl SiteFile {
    /// `PREFIX/etc/ampl/site.toml`, where it is there.
    ///
    /// # Errors
    /// A usage [`Failure`] that names the file: it cannot be read, or something in it is wrong.
    pub fn find() -> Result<Option<Self>, Failure> {
        match installation().map(|prefix| prefix.join("etc/ampl/site.toml")) {
            Some(path) => Self::read(path),
            None => Ok(None),
        }
    }

    fn read(path: PathBuf) -> Result<Option<Self>, Failure> {
        // One that cannot be looked at may lock something.
        if path
            .symlink_metadata()
            .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
        {
            return Ok(None);
        }
        let place = path.display().to_string();
        let text = text_of(&path).map_err(|why| {
            let what = format!("cannot read the site's settings: {why}");
            Failure::message(Kind::Usage, what, &place, "whoever installed ampl can correct it")
        })?;
        let mut layer =
            SiteLayer::parse(&text).map_err(|errors| Failure::printed(Kind::Usage, errors.render(&place)))?;
        layer.text = with_sites(&layer.text, Some(&path), &place, &[])?;
        let (config, notices) = Config::parse(&layer.text)
            .map_err(|errors| Failure::printed(Kind::Usage, errors.render(&place)))?;
        Ok(Some(Self { path, layer, config, notices }))
    }

    /// `true` if any key is locked.
    pub fn locks_any(&self) -> bool {
        !self.layer.locked.is_empty()
    }

    /// `true` if the key, or its table, is locked.
    pub fn locks(&self, path: &str) -> bool {
        let table = path.split('.').next();
        self.layer.locked.iter().any(|locked| locked == path || Some(locked.as_str()) == table)
    }
}

/// The directory with `bin/ampl`; `None` for a command that is not installed.
fn installation() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let bin = program.parent().filter(|bin| bin.file_name() == Some(OsStr::new("bin")))?;
    bin.parent().map(Path::to_owned)
}

/// The recipe of that name in `PREFIX/share/configs`: `always`, or `always.toml`.
pub fn recipe(name: &OsStr) -> Option<PathBuf> {
    let name = name.to_str().filter(|name| !name.contains('/'))?;
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    let path = installation()?.join("share/configs").join(format!("{stem}.toml"));
    path.is_file().then_some(path)
}

/// Names of the recipes that the installation has, sorted.
pub fn recipes() -> Vec<String> {
    let Some(prefix) = installation() else { return Vec::new() };
    let entries = std::fs::read_dir(prefix.join("share/configs")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    names
}
