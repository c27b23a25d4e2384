//! The job's configuration as the command line gives it: file, `--set`, and the form in which the library finds it.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use ampl_core::config::{Config, ConfigError, ConfigErrors, LONGEST, Notice, SitesFault, table_path};
use ampl_core::plan::{Clipping, RankOutsideJob};

use crate::environment;
use crate::failure::{Failure, USAGE};

/// Options that `run` and `exec` share.
#[derive(clap::Args, Debug)]
pub struct JobArgs {
    /// Job file; without it AMPL_CONFIG, and without that the defaults
    #[arg(short = 'c', long = "config", value_name = "JOB.toml")]
    pub config: Option<OsString>,
    /// Run directory; must not exist yet
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Set one key of the job file, as in --set sampling.seed=7 or --set group.NAME.error=0.05
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Record regions of these sources, as in --hooks functions: the same as --set hooks.functions=true
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub hooks: Vec<String>,
}

impl JobArgs {
    /// Every setting of the command line, `KEY=VALUE`.
    pub fn settings(&self) -> Vec<String> {
        let hooks = self.hooks.iter().map(|name| format!("hooks.{name}=true"));
        hooks.chain(self.set.iter().cloned()).collect()
    }
}

/// A checked configuration.
#[derive(Debug)]
pub struct Job {
    /// The settings.
    pub config: Config,
    source: Source,
    /// Arguments of `--set`, `KEY=VALUE`.
    settings: Vec<String>,
    /// The text that was parsed, `--set` applied.
    text: String,
    /// True where the text differs from the file.
    edited: bool,
}

#[derive(Debug)]
enum Source {
    Defaults,
    File(PathBuf),
    /// `AMPL_CONFIG` carried the text itself.
    Inline,
}

impl Source {
    fn name(&self) -> String {
        match self {
            Self::Defaults => "defaults".into(),
            Self::File(path) => path.display().to_string(),
            Self::Inline => environment::CONFIG.into(),
        }
    }
}

impl Job {
    /// The configuration that `args` and `AMPL_CONFIG` name; notices are printed if `notices`.
    ///
    /// # Errors
    /// A [`Failure`] of status 2 listing everything wrong.
    pub fn load(args: &JobArgs, notices: bool) -> anyhow::Result<Self> {
        let (source, original) = read(args.config.clone().or_else(environment::config))?;
        let file = source.name();
        let settings = args.settings();
        // The name of the file of sites first: its tables can then be set like the job file's own.
        let (names, others): (Vec<&String>, Vec<&String>) =
            settings.iter().partition(|setting| key_of(setting) == "sites");
        let mut text = original.clone();
        for setting in names {
            text = set(&text, setting, &file)?;
        }
        text = inline_sites(&text, &source, args)?;
        for setting in others {
            text = set(&text, setting, &file)?;
        }
        let edited = text != original;
        match Config::parse(&text) {
            Ok((config, found)) => {
                if notices {
                    found.iter().for_each(|notice| tell!("{}", place_notice(notice, args, &file)));
                }
                Ok(Self { config, source, settings, text, edited })
            }
            Err(errors) => Err(Failure::printed(USAGE, explain(&errors, &original, args, &file))),
        }
    }

    /// Value of `AMPL_CONFIG` for the library: the job file's absolute path, or the text where it differs from the
    /// file; `None` for the defaults.
    pub fn for_library(&self) -> anyhow::Result<Option<OsString>> {
        Ok(match &self.source {
            Source::File(path) if !self.edited => Some(std::path::absolute(path)?.into_os_string()),
            Source::Defaults if !self.edited => None,
            // The newline distinguishes text from a path.
            _ => Some(format!("{}\n", self.text.trim_end_matches('\n')).into()),
        })
    }

    /// Changes one key, as `--set` does.
    pub fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        self.text = Config::set(&self.text, key, value)?;
        self.config = Config::parse(&self.text)?.0;
        self.edited = true;
        Ok(())
    }

    /// Source of the value of `key`, for messages: the last `--set` that touched it, else the file.
    pub fn place(&self, key: &str) -> String {
        match setting_of(&table_path(key), &self.settings) {
            Some(setting) => format!("--set {setting}"),
            None => self.source.name(),
        }
    }

    /// Reports groups that do not fit a job of `ranks` processes, and how they are clipped.
    pub fn notice_clipping(&self, ranks: u32) {
        let Some(clipping) = Clipping::of(&self.config, ranks) else { return };
        let place = match clipping.place(&self.text).filter(|_| !self.edited) {
            Some((line, column)) => format!("{}:{line}:{column}", self.source.name()),
            None => self.source.name(),
        };
        tell!("{}", clipping.render(&place));
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
fn set(text: &str, setting: &str, file: &str) -> anyhow::Result<String> {
    let Some((_, value)) = setting.split_once('=') else {
        return Err(Failure::message(USAGE, format!("'{setting}' has no '='"), "--set", "write KEY=VALUE"));
    };
    Config::set(text, key_of(setting), value).map_err(|error| {
        let line = match error.key.is_empty() {
            true => error.render(file),
            false => error.render_at(&format!("--set {setting}")),
        };
        Failure::printed(USAGE, line)
    })
}

fn key_of(setting: &str) -> &str {
    setting.split('=').next().unwrap_or_default().trim()
}

/// `text` with the tables of the file in `sites`, relative to the job file.
fn inline_sites(text: &str, source: &Source, args: &JobArgs) -> anyhow::Result<String> {
    let beside = match source {
        Source::File(path) => path.parent().map(Path::to_owned).unwrap_or_default(),
        // Text without a file is relative to the working directory.
        Source::Inline | Source::Defaults => PathBuf::new(),
    };
    let read = |name: &str| {
        let file = beside.join(name);
        let same = |job: &PathBuf| {
            file.canonicalize().ok().is_some_and(|file| job.canonicalize().ok() == Some(file))
        };
        if matches!(source, Source::File(job) if same(job)) {
            return Err("that is the job file itself".to_owned());
        }
        text_of(&file)
    };
    Config::inline_sites(text, read).map_err(|fault| {
        let lines = match fault {
            SitesFault::Here(error) => match setting_of("sites", &args.settings()) {
                Some(setting) => error.render_at(&format!("--set {setting}")),
                None => error.render(&source.name()),
            },
            SitesFault::There { file, errors } => errors.render(&beside.join(file).display().to_string()),
        };
        Failure::printed(USAGE, lines)
    })
}

fn read(named: Option<OsString>) -> anyhow::Result<(Source, String)> {
    let Some(named) = named else { return Ok((Source::Defaults, String::new())) };
    if named.as_encoded_bytes().contains(&b'\n') {
        let text = named.into_string().map_err(|_| {
            Failure::message(USAGE, "the configuration is not UTF-8", environment::CONFIG, "correct it")
        })?;
        return Ok((Source::Inline, text));
    }
    let path = PathBuf::from(named);
    let text = text_of(&path).map_err(|why| {
        let what = format!("cannot read the job file: {why}");
        Failure::message(USAGE, what, path.display(), "name a readable TOML file")
    })?;
    Ok((Source::File(path), text))
}

/// The text in `path`, or why there is none.
fn text_of(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| error.to_string();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    ampl_core::config::text(bytes)
}

/// The lines to print: `--set` where that put the error in, else the place in the file as the user wrote it.
fn explain(errors: &ConfigErrors, original: &str, args: &JobArgs, file: &str) -> String {
    let unedited = Config::parse(original).err().map(|errors| errors.0).unwrap_or_default();
    let line = |error: &ConfigError| {
        // Settings move lines; an error that was there before keeps its place.
        match unedited.iter().find(|before| before.key == error.key && before.cause == error.cause) {
            Some(before) => before.render(file),
            None => match setting_of(&error.key, &args.settings()) {
                Some(setting) => error.render_at(&format!("--set {setting}")),
                None if args.settings().is_empty() => error.render(file),
                None => error.render_at(&format!("{file} with --set {}", args.settings().join(" --set "))),
            },
        }
    };
    errors.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn place_notice(notice: &Notice, args: &JobArgs, file: &str) -> String {
    match setting_of(&notice.key, &args.settings()) {
        Some(setting) => format!("ampl: {} (--set {setting}): {}", notice.what, notice.instead),
        None => notice.render(file),
    }
}

/// The last `--set` that touched the key `path`, or something inside the unknown table `path`.
fn setting_of<'a>(path: &str, settings: &'a [String]) -> Option<&'a str> {
    settings.iter().rev().map(String::as_str).find(|setting| {
        let key = table_path(key_of(setting));
        key == path || key.strip_prefix(path).is_some_and(|rest| !path.is_empty() && rest.starts_with('.'))
    })
}

/// `dir` as an absolute path, which must not exist.
///
/// # Errors
/// A [`Failure`] of status 2 if it exists.
pub fn new_directory(dir: &Path) -> anyhow::Result<PathBuf> {
    if dir.symlink_metadata().is_ok() {
        return Err(Failure::message(
            USAGE,
            "the run directory exists",
            dir.display(),
            "name a new one with -o",
        ));
    }
    Ok(std::path::absolute(dir)?)
}
