//! `run.toml`: the facts and settings that the job wrote when it started.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ampl_core::config::{Config, Journal};
use ampl_core::plan::Plan;
use ampl_trace::RunInfo;
use ampl_trace::permissions::{as_directory, create_file};
use toml::Spanned;
use toml::de::DeValue;

/// Settings follow this line; before it stand the facts of the run.
const SETTINGS: &str = "# Resolved settings.";

/// Contents of `run.toml`.
#[derive(Debug, Default)]
pub struct RunFile {
    /// Directory of the journals.
    pub journals: Option<PathBuf>,
    /// Time at which the launcher returned, nanoseconds since the Unix epoch; `None` where it is not noted.
    pub ended_ns: Option<u64>,
    facts: String,
    config: String,
}

/// Notes in `run.toml` that the launcher of the run in `dir` has returned at `now_ns`, if the job has not come to its
/// end: up to then its ranks' last calls count.
pub fn note_end(dir: &Path, now_ns: u64) {
    let path = dir.join("run.toml");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let Some(at) = text.find(SETTINGS).filter(|_| !text.contains("\nended_ns = ")) else { return };
    let before = text[..at].trim_end_matches('\n').len();
    let noted = format!("{}\nended_ns = {now_ns}\n\n{}", &text[..before], &text[at..]);
    let new = dir.join("run.toml.new");
    // Renamed into place: a concurrent reader finds the old file or the new one.
    let written = create_file(&new).and_then(|mut file| file.write_all(noted.as_bytes()));
    as_directory(&new);
    if written.and_then(|()| fs::rename(&new, &path)).is_err() {
        let _ = fs::remove_file(&new);
    }
}

impl RunFile {
    /// `run.toml` of the run in `dir`; `None` if there is none that can be read.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(dir.join("run.toml")).ok()?;
        let (facts, config) = text.split_once(SETTINGS).unwrap_or((&text, ""));
        let mut file = Self { facts: facts.into(), config: config.trim_start().into(), ..Self::default() };
        file.ended_ns = file.number("ended_ns");
        // A relative path is the job's: the run directory's parent is the likeliest place it ran in.
        file.journals = file.text("journals").map(|path| match dir.parent() {
            Some(parent) if !Path::new(&path).is_absolute() => parent.join(path),
            _ => PathBuf::from(path),
        });
        Some(file)
    }

    /// True where the settings turn journals off: they had no names to be found by.
    pub fn keeps_no_journals(&self) -> bool {
        Config::parse(&self.config).is_ok_and(|(config, _)| config.output.journal == Journal::Off)
    }

    /// Time between two copies of a node's journals, nanoseconds.
    pub fn copy_ns(&self) -> Option<u64> {
        Config::parse(&self.config).ok()?.0.output.copy_ns
    }

    /// The value of `key`, each line on its own: an odd command line must not hide the rest.
    fn value(&self, key: &str) -> Option<DeValue<'_>> {
        let line =
            self.facts.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
        DeValue::parse(line.trim()).ok().map(Spanned::into_inner)
    }

    fn number(&self, key: &str) -> Option<u64> {
        let value = self.value(key)?;
        let number = value.as_integer()?;
        u64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    fn text(&self, key: &str) -> Option<String> {
        Some(self.value(key)?.as_str()?.to_owned())
    }

    /// The scheduler and its number of the job.
    pub fn scheduled(&self) -> Option<(String, String)> {
        Some((self.text("scheduler")?, self.text("job")?))
    }

    /// The run as the client would have described it; the MPI library is not known here.
    pub fn describe(&self) -> RunInfo {
        let words = self.value("command");
        let words = words.as_ref().and_then(|value| value.as_array()).into_iter().flatten();
        let mut run = RunInfo {
            ampl_version: self.text("ampl").unwrap_or_default(),
            ranks: self.number("ranks").and_then(|ranks| u32::try_from(ranks).ok()).unwrap_or(0),
            started_ns: self.number("started_ns").unwrap_or(0),
            command: words.filter_map(|word| word.get_ref().as_str().map(str::to_owned)).collect(),
            config: self.config.clone(),
            ..RunInfo::default()
        };
        let config = Config::parse(&self.config).ok().filter(|_| run.ranks > 0);
        if let Some(plan) = config.and_then(|(config, _)| Plan::new(config, run.ranks).ok()) {
            run.describe(&plan);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn facts_and_settings_come_back() {
        let dir = tempfile::tempdir().unwrap();
        assert!(RunFile::read(dir.path()).is_none());
        let config = Config::default().to_toml();
        let text = format!(
            "# Written.\nampl = \"0.1\"\nranks = 6\nstarted_ns = 17\njournals = \"/a \\\"b\\\"\"\nscheduler = \"slurm\"\njob = \"7\"\ncommand = [\"x\", \"\\u{{7}}\"]\n\n{SETTINGS}\n{config}"
        );
        fs::write(dir.path().join("run.toml"), text).unwrap();
        let file = RunFile::read(dir.path()).unwrap();
        assert_eq!(file.journals, Some(PathBuf::from("/a \"b\"")));
        assert_eq!(file.scheduled(), Some(("slurm".into(), "7".into())));
        let run = file.describe();
        // The command line has an escape that TOML does not know.
        assert_eq!((run.ranks, run.started_ns, run.command.len()), (6, 17, 0));
        assert_eq!((run.metrics.len(), run.groups[0].members.as_str()), (6, "0-5"));
        assert_eq!(Config::parse(&run.config).unwrap().0, Config::default());
        assert_eq!(file.ended_ns, None);
        let permissions =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        permissions(dir.path(), 0o750);
        permissions(&dir.path().join("run.toml"), 0o600);
        for now in [23, 24] {
            note_end(dir.path(), now);
            let mode = fs::metadata(dir.path().join("run.toml")).unwrap().permissions().mode();
            assert_eq!(mode & 0o040, 0o040, "{mode:o}");
            let file = RunFile::read(dir.path()).unwrap();
            // Its first end counts.
            assert_eq!((file.ended_ns, file.describe()), (Some(23), run.clone()));
        }
        note_end(&dir.path().join("none"), 25);
    }
}
