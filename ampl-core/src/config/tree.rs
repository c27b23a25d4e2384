//! From TOML to known keys with values of the right shape: everything else becomes an error here.

use toml_edit::{Document, Item, TableLike, Value};

use super::error::{Cause, ConfigError, ConfigErrors, Notice};
use super::fraction;
use super::keys::{self, KEYS, Key, Shape, TABLES};

/// Collects errors and notices by byte offset.
pub(super) struct Report<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    errors: Vec<(usize, String, Cause)>,
    notices: Vec<(usize, String, String, String)>,
}

impl<'t> Report<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(index, _)| index + 1)).collect();
        Self { text, line_starts, errors: Vec::new(), notices: Vec::new() }
    }

    pub(super) fn error(&mut self, at: usize, key: impl Into<String>, cause: Cause) {
        self.errors.push((at, key.into(), cause));
    }

    pub(super) fn notice(
        &mut self,
        at: usize,
        key: &str,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.notices.push((at, key.into(), what.into(), instead.into()));
    }

    /// Line and column in characters of a byte offset, both from 1.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|&start| start <= at).max(1);
        let start = self.line_starts[line - 1];
        let end = at.min(self.text.len());
        let column = self.text.get(start..end).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }

    /// The notices, or every error in the order of the text.
    pub(super) fn finish(mut self) -> Result<Vec<Notice>, ConfigErrors> {
        let mut errors = std::mem::take(&mut self.errors);
        errors.sort_by_key(|(at, ..)| *at);
        if errors.is_empty() {
            let mut notices = std::mem::take(&mut self.notices);
            notices.sort_by_key(|(at, ..)| *at);
            let notice = |(at, key, what, instead)| {
                let (line, column) = self.place(at);
                Notice { line, column, key, what, instead }
            };
            return Ok(notices.into_iter().map(notice).collect());
        }
        let error = |(at, key, cause)| {
            let (line, column) = self.place(at);
            ConfigError { line, column, key, cause }
        };
        Err(ConfigErrors(errors.into_iter().map(error).collect()))
    }
}

/// One table of the text: `[sampling]`, or one of several `[[group]]`.
pub(super) struct Block<'d> {
    pub(super) table: &'static str,
    /// Byte offset of the table.
    pub(super) at: usize,
    entries: Vec<Entry<'d>>,
    /// Known keys whose value was refused.
    refused: Vec<&'static str>,
}

struct Entry<'d> {
    key: &'static Key,
    value: &'d Value,
    at: usize,
}

impl<'d> Block<'d> {
    fn entry(&self, name: &str) -> Option<&Entry<'d>> {
        debug_assert!(
            keys::find(self.table, name).is_some(),
            "{}.{name} is not in the table of keys",
            self.table
        );
        self.entries.iter().find(|entry| entry.key.name == name)
    }

    /// Byte offset of the value of `name`, or of the table when absent.
    pub(super) fn at(&self, name: &str) -> usize {
        self.entry(name).map_or(self.at, |entry| entry.at)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// `true` if `name` was written and already reported as wrong.
    pub(super) fn refused(&self, name: &str) -> bool {
        self.refused.contains(&name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'d str> {
        self.entry(name)?.value.as_str()
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.entry(name)?.value.as_integer()
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let value = self.entry(name)?.value;
        value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
    }

    /// A fraction: a number, or text in percent; other text is no number.
    pub(super) fn fraction(&self, name: &str) -> Option<f64> {
        let percent = |text| fraction::percentage(text).unwrap_or(f64::NAN);
        self.number(name).or_else(|| self.text(name).map(percent))
    }

    /// The value of `name` as errors show it.
    pub(super) fn written(&self, name: &str) -> String {
        let text = self.text(name).map(|text| format!("{text:?}"));
        text.or_else(|| self.number(name).map(|number| number.to_string())).unwrap_or_default()
    }

    pub(super) fn boolean(&self, name: &str) -> Option<bool> {
        self.entry(name)?.value.as_bool()
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.table)
    }
}

/// The blocks of `document`, in its order; only known keys with values of the right shape. Everything else is in
/// `report`.
pub(super) fn read<'d>(document: &'d Document<&str>, report: &mut Report<'_>) -> Vec<Block<'d>> {
    let mut blocks = Vec::new();
    let root = document.as_table();
    for (name, item) in root.iter() {
        let at = key_offset(root, name, item);
        if let Some(table) = keys::table(name) {
            if table.many {
                read_many(table.name, at, item, report, &mut blocks);
            } else if let Some(found) = item.as_table_like() {
                let at = item.span().map_or(at, |span| span.start);
                blocks.push(read_block(table.name, at, found, report));
            } else {
                let expected = format!("a table, [{name}]");
                report.error(at, name, Cause::WrongType { expected, found: kind(item).into() });
            }
        } else if let Some(key) = keys::find("", name) {
            if let Some(value) = check_value(key, item, at, report) {
                // The only such key names a file, and settings are made of text alone.
                let at = value.span().map_or(at, |span| span.start);
                report.error(at, name, Cause::FileNotRead);
            }
        } else {
            report.error(at, name, unknown("", name));
        }
    }
    blocks
}

fn read_many<'d>(
    name: &'static str,
    at: usize,
    item: &'d Item,
    report: &mut Report<'_>,
    blocks: &mut Vec<Block<'d>>,
) {
    if let Some(tables) = item.as_array_of_tables() {
        for table in tables {
            let at = table.span().map_or(at, |span| span.start);
            blocks.push(read_block(name, at, table, report));
        }
        return;
    }
    let wrong =
        |found: &str| Cause::WrongType { expected: format!("tables, [[{name}]]"), found: found.into() };
    let Some(array) = item.as_array() else {
        return report.error(at, name, wrong(kind(item)));
    };
    for value in array {
        let at = value.span().map_or(at, |span| span.start);
        match value.as_inline_table() {
            Some(table) => blocks.push(read_block(name, at, table, report)),
            None => report.error(at, name, wrong(value_kind(value))),
        }
    }
}

fn read_block<'d>(
    table: &'static str,
    at: usize,
    found: &'d dyn TableLike,
    report: &mut Report<'_>,
) -> Block<'d> {
    let (mut entries, mut refused) = (Vec::new(), Vec::new());
    for (name, item) in found.iter() {
        let key_at = key_offset(found, name, item);
        let Some(key) = keys::find(table, name) else {
            report.error(key_at, format!("{table}.{name}"), unknown(table, name));
            continue;
        };
        match check_value(key, item, key_at, report) {
            Some(value) => {
                entries.push(Entry { key, value, at: value.span().map_or(key_at, |span| span.start) })
            }
            None => refused.push(key.name),
        }
    }
    Block { table, at, entries, refused }
}

/// The value of `item` if it fits `key`.
fn check_value<'d>(
    key: &'static Key,
    item: &'d Item,
    key_at: usize,
    report: &mut Report<'_>,
) -> Option<&'d Value> {
    let at = item.span().map_or(key_at, |span| span.start);
    let wrong = |expected: &str| Cause::WrongType { expected: expected.into(), found: kind(item).into() };
    let mut refuse = |at, cause| {
        report.error(at, key.path(), cause);
        None
    };
    let Some(value) = item.as_value() else {
        return refuse(key_at, wrong(expectation(key.shape)));
    };
    let fits = match key.shape {
        Shape::Integer => value.is_integer(),
        Shape::Number => value.is_integer() || value.is_float(),
        Shape::Fraction => value.is_integer() || value.is_float() || value.is_str(),
        Shape::Text | Shape::Word(_) => value.is_str(),
        Shape::Boolean => value.is_bool(),
        Shape::Count => value.is_integer() || value.as_str() == Some("auto"),
    };
    if !fits {
        return refuse(at, wrong(expectation(key.shape)));
    }
    if let (Shape::Word(words), Some(word)) = (key.shape, value.as_str())
        && !words.contains(&word)
    {
        let nearest = keys::nearest(word, words.iter().copied());
        return refuse(at, Cause::UnknownWord { word: word.to_owned(), allowed: words.to_vec(), nearest });
    }
    Some(value)
}

fn unknown(table: &str, name: &str) -> Cause {
    let keys = KEYS.iter().filter(|key| key.table == table).map(|key| key.name);
    let tables = TABLES.iter().filter(|_| table.is_empty()).map(|table| table.name);
    Cause::UnknownKey { nearest: keys::nearest_key(table, name), known: tables.chain(keys).collect() }
}

fn key_offset(table: &dyn TableLike, name: &str, item: &Item) -> usize {
    let key = table.get_key_value(name).and_then(|(key, _)| key.span());
    key.or_else(|| item.span()).map_or(0, |span| span.start)
}

fn expectation(shape: Shape) -> &'static str {
    match shape {
        Shape::Integer => "a whole number",
        Shape::Number => "a number",
        Shape::Fraction => "a fraction such as \"5%\" or 0.05",
        Shape::Text | Shape::Word(_) => "text in quotes",
        Shape::Boolean => "true or false",
        Shape::Count => "a whole number or \"auto\"",
    }
}

fn kind(item: &Item) -> &'static str {
    match item {
        Item::Value(value) => value_kind(value),
        Item::ArrayOfTables(_) => "an array of tables",
        Item::Table(_) | Item::None => "a table",
    }
}

fn value_kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a fraction",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "an array",
        Value::InlineTable(_) => "a table",
    }
}
