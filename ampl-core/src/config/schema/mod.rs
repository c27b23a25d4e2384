//! The one table of keys: validation, suggestions and the documentation of `JOB.toml` read it.

mod forms;
mod hooks;
mod output;
pub(super) mod settings;
mod table;

pub use hooks::Hooks;
pub use output::Output;
pub(super) use settings::Settings;
pub use table::{Agent, KEYS, Sampling, TABLES, Trace, Window};
pub(super) use table::{GroupTable, MetricTable, SiteTable};

/// One key of `JOB.toml`.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Table it stands in; empty for the top level.
    pub table: &'static str,
    /// Name within the table.
    pub name: &'static str,
    /// Form of its value.
    pub shape: Shape,
    /// Value when absent, as written in TOML; empty when there is none.
    pub default: &'static str,
    /// A sentence or two for the reader.
    pub meaning: &'static str,
    /// Values that it takes, where its shape and `forms` leave that open.
    pub range: &'static str,
    /// Words or kinds of value, without quotes, and what each means.
    pub forms: &'static [(&'static str, &'static str)],
    /// A line of the same table that the good example needs.
    pub with: &'static str,
    /// A value other than the default, as written in TOML.
    pub good: &'static str,
    /// A value that is refused, as written in TOML.
    pub wrong: &'static str,
}

impl Key {
    /// A key without a default; a form describes its values.
    const fn new(table: &'static str, name: &'static str, meaning: &'static str) -> Self {
        Self {
            table,
            name,
            shape: Shape::Text,
            default: "",
            meaning,
            range: "",
            forms: &[],
            with: "",
            good: "",
            wrong: "",
        }
    }

    const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    const fn range(self, range: &'static str) -> Self {
        Self { range, ..self }
    }

    const fn forms(self, forms: &'static [(&'static str, &'static str)]) -> Self {
        Self { forms, ..self }
    }

    const fn with(self, with: &'static str) -> Self {
        Self { with, ..self }
    }

    const fn examples(self, good: &'static str, wrong: &'static str) -> Self {
        Self { good, wrong, ..self }
    }

    /// The shortest text of a job that sets the key to `value`, or leaves it out; the key follows its table's line.
    pub fn job(&self, value: Option<&str>) -> String {
        let own = value.map(|value| format!("{} = {value}\n", self.name)).unwrap_or_default();
        if self.table.is_empty() {
            return own;
        }
        let (open, close) = table(self.table).map_or(("[", "]"), Table::brackets);
        let required: &[(&str, &str)] = match self.table {
            "metric" => &[("name", "\"calls\"")],
            "group" if self.name == "program" => &[("name", "\"A\"")],
            "group" => &[("name", "\"A\""), ("members", "\"0-9\"")],
            "site" => &[("match", "\"MPI_Send\"")],
            _ => &[],
        };
        let others = required.iter().filter(|(name, _)| *name != self.name || value.is_none());
        let others: String = others.map(|(name, value)| format!("{name} = {value}\n")).collect();
        let with = if self.with.is_empty() { String::new() } else { format!("{}\n", self.with) };
        format!("{open}{}{close}\n{own}{others}{with}", self.table)
    }

    /// Dotted path, `sampling.seed`.
    pub fn path(&self) -> String {
        if self.table.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.table, self.name) }
    }
}

/// Form of a value, checked before its content is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A TOML integer.
    Integer,
    /// A TOML integer or float.
    Number,
    /// A fraction: a number, or text such as `"5%"`.
    Fraction,
    /// A TOML string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A TOML integer, or `"auto"`.
    Count,
}

/// One table of `JOB.toml`.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name.
    pub name: &'static str,
    /// Written `[[name]]`, any number of times.
    pub many: bool,
    /// Subject of the table, in a sentence for the reader.
    pub meaning: &'static str,
}

impl Table {
    /// Brackets around the name of the table.
    pub fn brackets(&self) -> (&'static str, &'static str) {
        if self.many { ("[[", "]]") } else { ("[", "]") }
    }
}

/// The table of that name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// The key `name` of `table`.
pub fn find(table: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.table == table && key.name == name)
}

/// The valid word nearest to `word`, if one is near enough to be meant.
///
/// Letter case and `-` for `_` cost nothing; otherwise one edit in three letters, at least two, is allowed.
pub fn nearest<'w>(word: &str, valid: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // The distance is quadratic; nothing that long is a slip of the finger.
    if word.len() > 80 {
        return None;
    }
    let folded = fold(word);
    valid
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| {
            let letters = candidate.len().max(word.len());
            *distance <= (letters / 3).max(2) && *distance < letters
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn fold(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

/// The valid key nearest to `name` in `table`: one of the same table, or `table.name` of another that has
/// exactly this key.
pub fn nearest_key(table: &str, name: &str) -> Option<String> {
    let here = KEYS.iter().filter(|key| key.table == table).map(|key| key.name);
    let tables = TABLES.iter().filter(|_| table.is_empty()).map(|table| table.name);
    nearest(name, here.chain(tables))
        .map(str::to_owned)
        .or_else(|| KEYS.iter().find(|key| key.name == name).map(Key::path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_a_table_once() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(key.table.is_empty() || table(key.table).is_some(), "{}", key.path());
            assert!(!KEYS[..index].iter().any(|other| other.path() == key.path()), "{}", key.path());
            assert!(
                !key.meaning.is_empty() && !key.good.is_empty() && !key.wrong.is_empty(),
                "{}",
                key.path()
            );
            if let Shape::Word(words) = key.shape {
                let explains = |word: &str| key.forms.iter().any(|(form, _)| *form == word);
                assert!(
                    key.forms.len() == words.len() && words.iter().copied().all(explains),
                    "{}",
                    key.path()
                );
            }
        }
    }

    #[test]
    fn nearest_forgives_slips_only() {
        assert_eq!(nearest_key("sampling", "windows_per_updates").as_deref(), Some("windows_per_update"));
        assert_eq!(nearest_key("sampling", "Windows-Per-Update").as_deref(), Some("windows_per_update"));
        assert_eq!(nearest_key("window", "seed").as_deref(), Some("sampling.seed"));
        assert_eq!(nearest_key("", "samplign").as_deref(), Some("sampling"));
        assert_eq!(nearest_key("sampling", "colour"), None);
        assert_eq!(nearest("x", ["a", "b"]), None);
    }
}
