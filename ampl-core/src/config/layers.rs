//! Layers of configuration: a site's settings under a job's, and which of them a job cannot change.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, Item, TableLike};

use super::error::{Cause, ConfigError, ConfigErrors};
use super::schema::{self, KEYS, Key, TABLES};
use super::tree::{self, Report};
use super::{Config, edit};

/// Table of a site's file that no job file has.
const LOCKED: &str = "locked";

/// A site's settings: a job file, and what other layers cannot change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteLayer {
    /// The text without `[locked]`; every line keeps its number.
    pub text: String,
    /// Locked keys and tables: `agent.max_overhead`, `hooks`.
    pub locked: Vec<String>,
}

impl SiteLayer {
    /// The settings and locks in `text`.
    ///
    /// The settings are not checked: [`Config::parse`] takes [`SiteLayer::text`].
    ///
    /// # Errors
    /// `text` is no TOML, or `[locked]` has anything but `keys`, an array of keys and tables of a job file.
    pub fn parse(text: &str) -> Result<Self, ConfigErrors> {
        let mut report = Report::new(text);
        let document = tree::document(text).unwrap_or_else(|(at, cause)| {
            report.error(at, "", cause);
            DeTable::new()
        });
        let mut layer = Self { text: text.to_owned(), locked: Vec::new() };
        if let Some((key, value)) = document.get_key_value(LOCKED) {
            let (mut from, mut to) = (key.span().start.min(value.span().start), value.span().end);
            match value.get_ref() {
                DeValue::Table(table) => {
                    for (name, value) in table {
                        from = from.min(name.span().start);
                        to = to.max(value.span().end);
                    }
                    layer.locked = locked_keys(table, &mut report);
                }
                _ => {
                    let expected = "a table, [locked]".to_owned();
                    let cause = Cause::WrongType { expected, found: "no table".into() };
                    report.error(from, LOCKED, cause);
                }
            }
            // An array may have its brackets, and a header its own, on lines of their own: only line breaks stay.
            let blank =
                |text: &str| text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect::<String>();
            layer.text = format!("{}{}{}", &text[..from], blank(&text[from..to]), &text[to..]);
        }
        report.finish().map(|_| layer)
    }

    /// Locked keys and tables whose settings in `config` are not those of this layer, whose settings are `site`.
    ///
    /// A locked key that the layer does not set keeps its default.
    pub fn overridden(&self, site: &Config, config: &Config) -> Vec<&str> {
        let (site, config) = (site.settings(), config.settings());
        let changed = |locked: &&String| match schema::table(locked) {
            Some(table) => {
                let of = |settings: &[Setting]| -> BTreeMap<String, String> {
                    let own = settings.iter().filter(|setting| setting.table == table.name);
                    own.map(|setting| (setting.address(), setting.value.clone())).collect()
                };
                of(&site) != of(&config)
            }
            None => {
                let entries: BTreeSet<&str> = config
                    .iter()
                    .filter(|setting| locked.split('.').next() == Some(setting.table))
                    .map(|setting| setting.entry.as_str())
                    .collect();
                entries.iter().any(|entry| {
                    let find = |settings: &[Setting]| {
                        let mut own = settings.iter();
                        let found = own.find(|setting| setting.entry == *entry && setting.path() == **locked);
                        found.map(|setting| setting.value.clone())
                    };
                    let there = site.iter().any(|setting| {
                        setting.entry == *entry && locked.split('.').next() == Some(setting.table)
                    });
                    find(&config) != if there { find(&site) } else { default_of(locked) }
                })
            }
        };
        self.locked.iter().filter(changed).map(String::as_str).collect()
    }
}

/// The value of a key in the shortest job that does not set it, as [`Setting::value`] has it.
fn default_of(path: &str) -> Option<String> {
    let key = KEYS.iter().find(|key| key.path() == path)?;
    let (config, _) = Config::parse(&key.job(None)).ok()?;
    config.settings().into_iter().find(|setting| setting.path() == path).map(|setting| setting.value)
}

/// The keys in `[locked]`.
fn locked_keys(table: &DeTable<'_>, report: &mut Report<'_>) -> Vec<String> {
    let mut locked = Vec::new();
    for (name, value) in table {
        if name.get_ref() != "keys" {
            let cause = Cause::UnknownKey { nearest: Some("keys".into()), known: vec!["keys"] };
            report.error(name.span().start, format!("{LOCKED}.{}", name.get_ref()), cause);
            continue;
        }
        let array = value.get_ref().as_array();
        if array.is_none() {
            let expected = "an array of keys, such as [\"agent.max_overhead\"]".to_owned();
            let cause = Cause::WrongType { expected, found: "no array".into() };
            report.error(value.span().start, "locked.keys", cause);
        }
        for value in array.into_iter().flatten() {
            let path = value.get_ref().as_str().unwrap_or_default();
            let keys = KEYS.iter().filter(|key| !key.table.is_empty()).map(Key::path);
            let known = keys.clone().any(|key| key == path);
            match known || schema::table(path).is_some() {
                true => locked.push(path.to_owned()),
                false => {
                    // A key without a table is not locked by itself, and must not be named.
                    let paths: Vec<String> = keys.collect();
                    let words = paths.iter().map(String::as_str).chain(TABLES.iter().map(|table| table.name));
                    let expected = match schema::nearest(path, words) {
                        Some(nearest) => format!("a key of a job file: did you mean {nearest:?}?"),
                        None => "a key of a job file, such as \"agent.max_overhead\", or a table of one"
                            .to_owned(),
                    };
                    let cause = Cause::Invalid { found: format!("{path:?}"), expected };
                    report.error(value.span().start, "locked.keys", cause);
                }
            }
        }
    }
    locked
}

/// One setting of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Table that it stands in.
    pub table: &'static str,
    /// Entry of a repeated table: the name of a group, the match of a site, the number of a metric; else empty.
    pub entry: String,
    /// Number of that entry, from 0.
    pub number: usize,
    /// Name of that entry, of a metric too.
    pub label: String,
    /// Name of the key.
    pub name: &'static str,
    /// Value as TOML; empty where there is none.
    pub value: String,
}

impl Setting {
    /// Key as `--set` takes it: `group.Static.sample_size`.
    pub fn address(&self) -> String {
        match self.entry.as_str() {
            "" => self.path(),
            entry => format!("{}.{entry}.{}", self.table, self.name),
        }
    }

    /// `true` if `--set` with that key sets it: an entry has a name and a number.
    pub fn is_addressed_by(&self, key: &str) -> bool {
        let Self { table, entry, number, label, name, .. } = self;
        match entry.as_str() {
            "" => key == self.path(),
            _ => key == format!("{table}.{number}.{name}") || key == format!("{table}.{label}.{name}"),
        }
    }

    /// Key without the entry: `group.sample_size`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }
}

impl Config {
    /// `over` with what only `base` sets; both are texts of job files. Comments and order of `over` stay.
    ///
    /// A key that both have is `over`'s. A repeated table (`[[group]]`) is one setting: where `over` has any of its
    /// entries, none of `base` is taken.
    ///
    /// # Errors
    /// One of them is no TOML.
    pub fn layered(base: &str, over: &str) -> Result<String, ConfigError> {
        let base = edit::document(base)?;
        let mut merged = edit::document(over)?;
        let root = merged.as_table_mut();
        for (name, item) in base.iter() {
            match root.get_mut(name) {
                None => _ = root.insert(name, item.clone()),
                Some(there) => {
                    if let (Some(from), Some(to)) = (item.as_table_like(), there.as_table_like_mut()) {
                        add_missing(from, to);
                    }
                }
            }
        }
        Ok(merged.to_string())
    }

    /// Every setting, in the order of the table of keys; those of repeated tables once for each entry.
    pub fn settings(&self) -> Vec<Setting> {
        let text = self.to_toml();
        let document: DocumentMut = text.parse().unwrap_or_default();
        let mut settings = Vec::new();
        for table in TABLES {
            let keys: Vec<&Key> = KEYS.iter().filter(|key| key.table == table.name).collect();
            let mut take = |number: usize, entry: String, label: &str, found: Option<&dyn TableLike>| {
                settings.extend(keys.iter().map(|key| Setting {
                    table: table.name,
                    entry: entry.clone(),
                    number,
                    label: label.to_owned(),
                    name: key.name,
                    value: found.and_then(|found| found.get(key.name)).map(plain).unwrap_or_default(),
                }));
            };
            let Some(item) = document.get(table.name).filter(|_| table.many) else {
                if !table.many {
                    take(0, String::new(), "", document.get(table.name).and_then(Item::as_table_like));
                }
                continue;
            };
            let tables = item.as_array_of_tables().into_iter().flatten();
            for (number, found) in tables.enumerate() {
                let label =
                    ["name", "match"].iter().find_map(|key| found.get(key)?.as_str()).unwrap_or_default();
                // Several metrics may have one name.
                let entry = if table.name == "metric" { number.to_string() } else { label.to_owned() };
                take(number, entry, label, Some(found));
            }
        }
        settings
    }
}

/// Keys that `text` sets: `sampling.seed`, or `group` for a repeated table. None of a text that is no TOML.
pub fn keys_in(text: &str) -> BTreeSet<String> {
    let document: DocumentMut = text.parse().unwrap_or_default();
    let mut keys = BTreeSet::new();
    for (name, item) in document.iter() {
        match item.as_table_like().filter(|_| schema::table(name).is_some_and(|table| !table.many)) {
            Some(table) => keys.extend(table.iter().map(|(key, _)| format!("{name}.{key}"))),
            None => _ = keys.insert(name.to_owned()),
        }
    }
    keys
}

/// Copies the values of `from` that `to` lacks.
fn add_missing(from: &dyn TableLike, to: &mut dyn TableLike) {
    for (name, item) in from.iter().filter(|(name, _)| !name.is_empty()) {
        if let (None, Some(value)) = (to.get(name), item.as_value()) {
            let mut value = value.clone();
            // A comment behind it would end an inline table.
            value.decor_mut().clear();
            to.insert(name, Item::Value(value));
        }
    }
}

/// The value without comments and spaces around it.
fn plain(item: &Item) -> String {
    item.as_value().map_or_else(String::new, |value| value.clone().decorated("", "").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_upper_layer_sets_hides_the_lower() {
        let base = "[sampling] # site\nseed = 7 # lucky\nwindows_per_update = 2\n[agent]\nmax_overhead = '2%'\n\
                    [[group]]\nname = 'A'\nmembers = '0'\n";
        for over in ["# job\n[sampling]\nseed = 9\n", "sampling.seed = 9\n", "sampling = { seed = 9 }\n"] {
            let merged = Config::layered(base, over).unwrap();
            let (config, _) = Config::parse(&merged).unwrap_or_else(|errors| panic!("{errors}\n{merged}"));
            assert_eq!((config.sampling.seed, config.sampling.windows_per_update), (9, 2), "{merged}");
            assert_eq!((config.agent.max_overhead, config.groups.len()), (Some(0.02), 1), "{merged}");
        }
        // Entries of a repeated table belong together.
        let merged = Config::layered(base, "[[group]]\nname = 'B'\nmembers = '0-3'\n").unwrap();
        let (config, _) = Config::parse(&merged).unwrap();
        assert_eq!(config.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["B"]);
        assert_eq!(Config::layered("", "# only\n").unwrap(), "# only\n");
        assert!(Config::layered("[a", "").is_err() && Config::layered("", "[a").is_err());
    }

    #[test]
    fn locks_are_read_and_keep_lines() {
        let rest = "\n[sampling]\nseed = 'x'\n";
        for locked in [
            "[locked]\nkeys = [ # these\n  \"agent.max_overhead\",\n  \"group\", \"hooks\"\n]\n",
            "locked = { keys = [\"agent.max_overhead\", \"group\", \"hooks\"] }\n\n\n\n",
            "locked.keys = [\"agent.max_overhead\",\n\n\n\n\"group\", \"hooks\"]",
        ] {
            let text = format!("{locked}{rest}");
            let layer = SiteLayer::parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            assert_eq!(layer.locked, ["agent.max_overhead", "group", "hooks"], "{text}");
            let errors = Config::parse(&layer.text).unwrap_err();
            assert_eq!((errors.0.len(), errors.0[0].key.as_str()), (1, "sampling.seed"), "{errors}");
            let line = text.lines().position(|line| line.starts_with("seed")).unwrap() + 1;
            assert_eq!(errors.0[0].line, line, "{text}");
        }
        for (text, key, fix) in [
            ("[locked]\nkeys = [\"agent.max_overhaed\"]", "locked.keys", "\"agent.max_overhead\""),
            ("[locked]\nkeys = [\"sites\"]", "locked.keys", "did you mean \"site\"?"),
            ("[locked]\nkeys = [7]", "locked.keys", "a key of a job file"),
            ("[locked]\nkeys = \"hooks\"", "locked.keys", "an array of keys"),
            ("[locked]\nkey = []", "locked.key", "'keys'"),
            ("locked = 3", "locked", "a table"),
            ("[locked", "", "correct the line"),
        ] {
            let errors = SiteLayer::parse(text).unwrap_err();
            assert_eq!((errors.0.len(), errors.0[0].key.as_str()), (1, key), "{text}");
            assert!(errors.0[0].fix().contains(fix), "{}", errors.0[0]);
        }
    }

    #[test]
    fn a_locked_setting_is_the_sites_or_the_default() {
        let changed = |locked: &[&str], site: &str, job: &str| {
            let layer =
                SiteLayer { text: site.into(), locked: locked.iter().map(|&key| key.to_owned()).collect() };
            let parsed = |text: &str| Config::parse(text).unwrap_or_else(|errors| panic!("{errors}")).0;
            let merged = Config::layered(site, job).unwrap();
            let (site, merged) = (parsed(site), parsed(&merged));
            layer.overridden(&site, &merged).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let site = "[agent]\nmax_overhead = '2%'\n[[group]]\nname = 'A'\nmembers = '0'\nerror = 0.05\n";
        let all = ["agent.max_overhead", "hooks", "group.error"];
        assert_eq!(changed(&all, site, "[sampling]\nseed = 1\n"), [""; 0]);
        // The same value in another form is no change.
        assert_eq!(changed(&all, site, "[agent]\nmax_overhead = 0.02\n"), [""; 0]);
        assert_eq!(changed(&all, site, "[agent]\nmax_overhead = 0.03\n"), ["agent.max_overhead"]);
        assert_eq!(changed(&all, site, "[hooks]\nfunctions = true\n"), ["hooks"]);
        assert_eq!(changed(&["sampling.seed"], "", "[sampling]\nseed = 42\n"), [""; 0]);
        assert_eq!(changed(&["sampling.seed"], "", "[sampling]\nseed = 43\n"), ["sampling.seed"]);
        let groups = "[[group]]\nname = 'B'\nmembers = '1'\n";
        assert_eq!(changed(&["group.error"], site, groups), [""; 0]);
        assert_eq!(changed(&["group.error"], site, &format!("{groups}error = 0.5\n")), ["group.error"]);
        assert_eq!(changed(&["group.error"], site, &format!("{groups}sample_size = 1\n")), ["group.error"]);
        assert_eq!(changed(&["group"], site, groups), ["group"]);
        assert_eq!(changed(&["group"], "", groups), ["group"]);
        assert_eq!(changed(&["group", "metric"], site, ""), [""; 0]);
    }

    #[test]
    fn settings_name_every_key_and_entry() {
        let text =
            "[[group]]\nname = 'a.b'\nmembers = '0-3'\nsample_size = 2\n[[site]]\nmatch = 'MPI_Send'\n";
        let settings = Config::parse(text).unwrap().0.settings();
        let value = |address: &str| {
            let found = settings.iter().find(|setting| setting.address() == address);
            found.map(|setting| setting.value.as_str())
        };
        assert_eq!(value("sampling.seed"), Some("42"));
        assert_eq!(value("agent.max_overhead"), Some(""));
        assert_eq!(value("group.a.b.sample_size"), Some("2"));
        assert_eq!(value("metric.1.name"), Some("\"compute.time\""));
        assert_eq!(value("site.MPI_Send.trace"), Some("\"on\""));
        let by = |key: &str| settings.iter().filter(|setting| setting.is_addressed_by(key)).count();
        for key in
            ["group.a.b.error", "group.0.error", "metric.mpi.time.role", "metric.1.role", "sampling.seed"]
        {
            assert_eq!(by(key), 1, "{key}");
        }
        assert_eq!((by("group.1.error"), by("group.error"), by("seed")), (0, 0, 0));
        for key in KEYS.iter().filter(|key| !key.table.is_empty()) {
            assert!(settings.iter().any(|setting| setting.path() == key.path()), "{}", key.path());
        }
        let keys = keys_in("sites = 'x'\nagent.client = 1\n[[group]]\nname = 'A'\n[sampling]\nseed = 1\n");
        assert_eq!(Vec::from_iter(keys), ["agent.client", "group", "sampling.seed", "sites"]);
    }
}
