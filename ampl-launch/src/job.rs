//! The job's configuration in its layers: built in, the site's, job file, `--set`; and the form in which the library
//! finds it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ampl_core::config::{
    Config, ConfigError, ConfigErrors, Notice, Setting, keys_in, split_origin, table_path, with_origin,
};
use ampl_core::plan::{Clipping, RankOutsideJob};

use crate::environment;
use crate::failure::{Failure, Kind};
use crate::job_text::{key_of, setting_of, text_of, with_sites};
use crate::site_file::{self, SiteFile};

/// A job's configuration as it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Job file, the name of a recipe, or a text; without it `AMPL_CONFIG`, and without that the defaults.
    pub config: Option<OsString>,
    /// Run directory.
    pub output: Option<PathBuf>,
    /// Settings above the job file, `KEY=VALUE`.
    pub settings: Vec<String>,
}

/// The site's settings as the lowest layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// They count, and the job must leave alone what they lock.
    Checked,
    /// They count; `ampl run` has checked the locks.
    Trusted,
    /// They do not count: the job is none of this machine.
    Ignored,
}

/// Layer that a setting comes from, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The default.
    BuiltIn,
    /// `PREFIX/etc/ampl/site.toml`
    Site,
    /// `-c`, else `AMPL_CONFIG`
    Job,
    /// `--set`, or `--hooks`
    Set,
}

/// A checked configuration.
#[derive(Debug)]
pub struct Job {
    /// The settings.
    pub config: Config,
    source: Source,
    /// Arguments of `--set`, `KEY=VALUE`.
    settings: Vec<String>,
    /// The job file, with the file of its `sites` in its place.
    own: String,
    /// The site's settings below it.
    site: Option<SiteFile>,
    /// The text that was parsed: all layers.
    text: String,
    /// True where the text differs from the file.
    edited: bool,
}

#[derive(Debug)]
enum Source {
    Defaults,
    File(PathBuf),
    /// `-c` or `AMPL_CONFIG` carried this text itself.
    Inline(String),
}

impl Source {
    fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Defaults | Self::Inline(_) => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Defaults => "defaults".into(),
            Self::File(path) => path.display().to_string(),
            Self::Inline(text) => split_origin(text).0.unwrap_or(environment::CONFIG).into(),
        }
    }
}

impl Job {
    /// The configuration that `args` and `AMPL_CONFIG` name, above the site's; notices are printed if `notices`.
    ///
    /// # Errors
    /// A usage [`Failure`] listing everything wrong, or what the site locks.
    pub fn load(args: &Request, notices: bool, site: Site) -> Result<Self, Failure> {
        let below = if site == Site::Ignored { None } else { SiteFile::find()? };
        let (source, original) = read(args.config.clone().or_else(environment::config))?;
        let file = source.name();
        let settings = args.settings.clone();
        // The name of the file of sites first: its tables can then be set like the job file's own.
        let (names, others): (Vec<&String>, Vec<&String>) =
            settings.iter().partition(|setting| key_of(setting) == "sites");
        let mut own = original.clone();
        for setting in names {
            own = set(&own, setting, &file)?;
        }
        own = with_sites(&own, source.file(), &file, &settings)?;
        let mut text = match &below {
            Some(below) => Config::layered(&below.layer.text, &own)
                .map_err(|error| Failure::printed(Kind::Usage, error.render(&file)))?,
            None => own.clone(),
        };
        for setting in others {
            text = set(&text, setting, &file)?;
        }
        let edited = text != original;
        match Config::parse(&text) {
            Ok((config, found)) => {
                let job = Self { config, source, settings, own, site: below, text, edited };
                // `ampl run` hands over what it has checked: a variable of its own was set within the job.
                let is_own = args.config.is_none() && environment::config().is_some();
                match site {
                    Site::Checked => job.check_locks(args.output.is_some())?,
                    // The directory is the one that `ampl run` names.
                    Site::Trusted if is_own => job.check_locks(false)?,
                    Site::Trusted | Site::Ignored => {}
                }
                if notices {
                    found.iter().for_each(|notice| notice!("{}", job.place_notice(notice)));
                }
                Ok(job)
            }
            Err(errors) => {
                let below = below.map(|below| below.path.display().to_string());
                Err(Failure::printed(Kind::Usage, explain(&errors, &original, args, &file, below.as_deref())))
            }
        }
    }

    /// Refuses what the site locks.
    fn check_locks(&self, names_directory: bool) -> Result<(), Failure> {
        let Some(site) = &self.site else { return Ok(()) };
        let mut lines = Vec::new();
        let mut refuse = |key: &str, fix: String| {
            lines.push(format!("ampl: '{key}' is locked by the site ({}): {fix}", site.path.display()));
        };
        let above = keys_in(&self.own);
        for key in site.layer.overridden(&site.config, &self.config) {
            let in_file = above.iter().any(|found| {
                let table = key.split('.').next().unwrap_or_default();
                found == key
                    || found == table
                    || found.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
            });
            refuse(
                key,
                match setting_of(key, &self.settings) {
                    Some(setting) => format!("leave out --set {setting}"),
                    None if in_file => format!("take it out of {}", self.source.name()),
                    None => {
                        format!("it follows from other settings of {}: take these out", self.source.name())
                    }
                },
            );
        }
        if names_directory && site.locks("output.dir") {
            refuse("output.dir", "leave out -o".into());
        }
        if lines.is_empty() { Ok(()) } else { Err(Failure::printed(Kind::Usage, lines.join("\n"))) }
    }

    /// Refuses `prefix`, the words before a program, where one sets `AMPL_CONFIG` behind the site's back.
    ///
    /// # Errors
    /// A usage [`Failure`] that names the site's file, if that locks anything.
    pub fn refuse_hidden(&self, prefix: &[OsString]) -> Result<(), Failure> {
        let name = environment::CONFIG;
        let sets = |word: &OsString| {
            word.as_encoded_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        let Some(site) = self.site.as_ref().filter(|site| site.locks_any()) else { return Ok(()) };
        if !prefix.iter().any(sets) {
            return Ok(());
        }
        let what = format!("{name} before the program passes by what the site locks");
        let fix = "give the job file to ampl run -c, or leave it out";
        Err(Failure::message(Kind::Usage, what, site.path.display(), fix))
    }

    /// The site's file, if any.
    pub fn site(&self) -> Option<&SiteFile> {
        self.site.as_ref()
    }

    /// Layer that gave `setting` its value, and its place: a file, or the `--set`.
    pub fn layer(&self, setting: &Setting) -> (Layer, Option<String>) {
        let mut settings = self.settings.iter().rev();
        if let Some(found) = settings.find(|found| setting.is_addressed_by(key_of(found))) {
            return (Layer::Set, Some(format!("--set {found}")));
        }
        let has = |text: &str| {
            let keys = keys_in(text);
            keys.contains(&setting.path()) || keys.contains(setting.table)
        };
        match &self.site {
            _ if has(&self.own) => (Layer::Job, Some(self.source.name())),
            Some(site) if has(&site.layer.text) => (Layer::Site, Some(site.path.display().to_string())),
            _ => (Layer::BuiltIn, None),
        }
    }

    /// The job file for `-c` of another command: absolute, or its text; `None` for the defaults.
    pub fn file(&self) -> Result<Option<OsString>, Failure> {
        Ok(match &self.source {
            Source::File(path) => Some(std::path::absolute(path)?.into_os_string()),
            Source::Inline(text) => Some(text.into()),
            Source::Defaults => None,
        })
    }

    fn place_notice(&self, notice: &Notice) -> String {
        let same = |found: &&Notice| found.key == notice.key && found.what == notice.what;
        let own = Config::parse(&self.own).map(|(_, found)| found).unwrap_or_default();
        match setting_of(&notice.key, &self.settings) {
            Some(setting) => format!("ampl: {} (--set {setting}): {}", notice.what, notice.instead),
            None => match (own.iter().find(same), &self.site) {
                (Some(own), _) => own.render(&self.source.name()),
                (None, Some(site)) => match site.notices.iter().find(same) {
                    Some(found) => found.render(&site.path.display().to_string()),
                    None => notice.render(&self.source.name()),
                },
                _ => notice.render(&self.source.name()),
            },
        }
    }

    /// Value of `AMPL_CONFIG` for the library: the job file's absolute path, or the text where it differs from the
    /// file; `None` for the defaults.
    pub fn for_library(&self) -> Result<Option<OsString>, Failure> {
        Ok(match &self.source {
            Source::File(path) if !self.edited => Some(std::path::absolute(path)?.into_os_string()),
            Source::Defaults if !self.edited => None,
            // The newline distinguishes text from a path.
            _ => {
                let text = format!("{}\n", self.text.trim_end_matches('\n'));
                Some(with_origin(&text, &self.origin()?).into())
            }
        })
    }

    /// Name of an edited text in the library's messages: what the user has written.
    fn origin(&self) -> Result<String, Failure> {
        let changed =
            self.settings.iter().map(|setting| format!("--set {setting}")).collect::<Vec<_>>().join(" ");
        let name = match &self.source {
            Source::Defaults => return Ok(changed),
            Source::File(path) => std::path::absolute(path)?.display().to_string(),
            Source::Inline(_) => self.source.name(),
        };
        Ok(if changed.is_empty() { name } else { format!("{name} with {changed}") })
    }

    /// Changes one key, as `--set` does.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        self.text = Config::set(&self.text, key, value).map_err(Failure::unexpected)?;
        self.config = Config::parse(&self.text).map_err(Failure::unexpected)?.0;
        self.edited = true;
        Ok(())
    }

    /// Source of the value of `key`, for messages: the last `--set` that touched it, else the file that has it.
    pub fn place(&self, key: &str) -> String {
        let path = table_path(key);
        if let Some(setting) = setting_of(&path, &self.settings) {
            return format!("--set {setting}");
        }
        let has = |text: &str| {
            let keys = keys_in(text);
            keys.contains(&path) || path.split('.').next().is_some_and(|table| keys.contains(table))
        };
        match &self.site {
            Some(site) if !has(&self.own) && has(&site.layer.text) => site.path.display().to_string(),
            _ => self.source.name(),
        }
    }

    /// Reports groups that do not fit a job of `ranks` processes, and how they are clipped.
    pub fn notice_clipping(&self, ranks: u32) {
        let Some(clipping) = Clipping::of(&self.config, ranks) else { return };
        let place = match clipping.place(&self.text).filter(|_| !self.edited) {
            Some((line, column)) => format!("{}:{line}:{column}", self.source.name()),
            None => self.source.name(),
        };
        notice!("{}", clipping.render(&place));
    }

    /// Place of the setting that names the rank of `error`.
    pub fn place_of(&self, error: &RankOutsideJob) -> String {
        let place = self.place(error.key());
        // Settings move lines.
        match error.place(&self.text).filter(|_| !self.edited) {
            Some((line, column)) => format!("{place}:{line}:{column}"),
            None => place,
        }
    }
}

/// `text` with one `KEY=VALUE` applied.
fn set(text: &str, setting: &str, file: &str) -> Result<String, Failure> {
    let Some((_, value)) = setting.split_once('=') else {
        return Err(Failure::message(
            Kind::Usage,
            format!("'{setting}' has no '='"),
            "--set",
            "write KEY=VALUE",
        ));
    };
    Config::set(text, key_of(setting), value).map_err(|error| {
        let line = match error.key.is_empty() {
            true => error.render(file),
            false => error.render_at(&format!("--set {setting}")),
        };
        Failure::printed(Kind::Usage, line)
    })
}

fn read(named: Option<OsString>) -> Result<(Source, String), Failure> {
    let Some(named) = named else { return Ok((Source::Defaults, String::new())) };
    if named.as_encoded_bytes().contains(&b'\n') {
        let text = named.into_string().map_err(|_| {
            Failure::message(Kind::Usage, "the configuration is not UTF-8", environment::CONFIG, "correct it")
        })?;
        let own = split_origin(&text).1.to_owned();
        return Ok((Source::Inline(text), own));
    }
    let mut path = PathBuf::from(named);
    // A file that is there goes before a recipe of its name.
    if (!path.exists() || path.is_dir())
        && let Some(recipe) = site_file::recipe(path.as_os_str())
    {
        path = recipe;
    }
    let text = text_of(&path).map_err(|why| {
        let what = format!("cannot read the job file: {why}");
        let recipes = match site_file::recipes() {
            recipes if recipes.is_empty() || path.components().count() > 1 => String::new(),
            recipes => format!(", or a recipe: {}", recipes.join(", ")),
        };
        Failure::message(Kind::Usage, what, path.display(), format!("name a readable TOML file{recipes}"))
    })?;
    Ok((Source::File(path), text))
}

/// The lines to print: `--set` where that put the error in, else the place in the file as the user wrote it.
fn explain(errors: &ConfigErrors, original: &str, args: &Request, file: &str, below: Option<&str>) -> String {
    let unedited = Config::parse(original).err().map(|errors| errors.0).unwrap_or_default();
    let settings = &args.settings;
    let line = |error: &ConfigError| {
        // Settings move lines; an error that was there before keeps its place.
        if let Some(before) =
            unedited.iter().find(|before| before.key == error.key && before.cause == error.cause)
        {
            return before.render(file);
        }
        if let Some(setting) = setting_of(&error.key, settings) {
            return error.render_at(&format!("--set {setting}"));
        }
        let with_settings =
            settings.iter().map(|setting| format!(" with --set {setting}")).collect::<String>();
        match (below, settings.is_empty()) {
            (None, true) => error.render(file),
            (None, false) => error.render_at(&format!("{file}{with_settings}")),
            (Some(below), _) => error.render_at(&format!("{file} above {below}{with_settings}")),
        }
    };
    errors.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `dir` as an absolute path, which must not exist.
///
/// # Errors
/// A usage [`Failure`] if it exists.
pub fn new_directory(dir: &Path) -> Result<PathBuf, Failure> {
    if dir.symlink_metadata().is_ok() {
        return Err(Failure::message(
            Kind::Usage,
            "the run directory exists",
            dir.display(),
            "name a new one with -o",
        ));
    }
    Ok(std::path::absolute(dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_place_of_a_file_goes_on_to_other_commands() {
        let text = "[sampling]\nseed = 7\n";
        let args = Request { config: Some(text.into()), ..Request::default() };
        let job = Job::load(&args, false, Site::Ignored).unwrap();
        assert_eq!((job.config.sampling.seed, job.file().unwrap()), (7, Some(text.into())));
    }

    #[test]
    fn an_edited_text_names_its_origin() {
        let settings = vec!["sampling.seed=7".to_owned()];
        let job = Job::load(&Request { settings, ..Request::default() }, false, Site::Ignored).unwrap();
        let text = job.for_library().unwrap().unwrap().into_string().unwrap();
        let (origin, own) = split_origin(&text);
        assert_eq!((origin, own), (Some("--set sampling.seed=7"), "[sampling]\nseed = 7\n"));
        // Another command that is given the text reads the same, and calls it the same.
        let again = Job::load(
            &Request { config: Some(text.clone().into()), ..Request::default() },
            false,
            Site::Ignored,
        );
        let again = again.unwrap();
        assert_eq!(
            (again.config.sampling.seed, again.source.name()),
            (7, "--set sampling.seed=7".to_owned())
        );
        assert_eq!(again.file().unwrap(), Some(text.into()));
    }
}
