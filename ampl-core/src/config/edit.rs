//! [`Config::set`]: `--set KEY=VALUE` applied to the text, before it is parsed.

use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::error::{Cause, ConfigError};
use super::schema::{self, Shape};
use super::{Config, UNGROUPED};

impl Config {
    /// `text` with `key` set to `value`, comments and order kept.
    ///
    /// Keys are dotted paths, `sampling.seed`. An entry of a repeated table is addressed by its name (a site by its
    /// match) or its number from 0: `group.Static.sample_size`, `metric.0.role`. `group.all`, the group of every rank in
    /// no other, need not be there. The value is read as TOML, or else taken as text.
    /// Whether the key exists and the value fits is [`Config::parse`]'s to say.
    ///
    /// # Errors
    /// `text` is no TOML, the key is no path, or it addresses an entry that is not there.
    pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
        let mut document = document(text)?;
        let fail = |cause| ConfigError { line: 1, column: 1, key: table_path(key), cause };
        let segments: Vec<&str> = key.split('.').collect();
        if segments.iter().any(|segment| segment.trim().is_empty()) {
            let expected = "a dotted key, such as sampling.seed".into();
            return Err(fail(Cause::Invalid { found: format!("{key:?}"), expected }));
        }
        let (table, entry, name) = split(key);
        let value = toml_value(table, name, value);
        let root = document.as_table_mut();
        if table.is_empty() {
            root.insert(name, Item::Value(value));
            return Ok(document.to_string());
        }
        let item = root.entry(table).or_insert_with(|| Item::Table(toml_edit::Table::new()));
        if table == "group" && entry == UNGROUPED {
            add_ungrouped(item);
        }
        let found = if schema::table(table).is_some_and(|table| table.many) {
            let have = entry_names(item);
            select(item, entry).ok_or_else(|| Cause::NoSuchEntry { entry: entry.to_owned(), have })
        } else if entry.is_empty() {
            item.as_table_like_mut()
                .ok_or_else(|| Cause::WrongType { expected: format!("[{table}]"), found: "no table".into() })
        } else {
            Err(Cause::UnknownKey { nearest: schema::nearest_key(table, name), known: Vec::new() })
        };
        found.map_err(fail)?.insert(name, Item::Value(value));
        Ok(document.to_string())
    }
}

/// `text` as a document that can be edited.
pub(super) fn document(text: &str) -> Result<DocumentMut, ConfigError> {
    let parsed = super::tree::check_depth(text).and_then(|()| {
        text.parse().map_err(|error: toml_edit::TomlError| {
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            (error.span().map_or(0, |span| span.start), Cause::Syntax { message })
        })
    });
    parsed.map_err(|(at, cause)| {
        let (line, column) = super::tree::Report::new(text).place(at);
        ConfigError { line, column, key: String::new(), cause }
    })
}

/// The path of `key` as errors name it: without the entry of a repeated table (`group.A.error` is `group.error`).
pub fn table_path(key: &str) -> String {
    let (table, entry, name) = split(key);
    match schema::table(table) {
        Some(found) if found.many && !entry.is_empty() => format!("{table}.{name}"),
        _ => key.to_owned(),
    }
}

/// Table, entry and name: metric and group names may have dots, so the entry is all between the first and the last.
fn split(key: &str) -> (&str, &str, &str) {
    match key.split_once('.') {
        None => ("", "", key),
        Some((table, rest)) => match rest.rsplit_once('.') {
            None => (table, "", rest),
            Some((entry, name)) => (table, entry, name),
        },
    }
}

fn toml_value(table: &str, name: &str, text: &str) -> Value {
    let parsed = text.trim().parse::<Value>().ok();
    // Where text is wanted, 2026 is a directory and 0-7 are ranks.
    let wants_text =
        schema::find(table, name).is_some_and(|key| matches!(key.shape, Shape::Text | Shape::Word(_)));
    match parsed {
        Some(mut value) if value.is_str() || !wants_text => {
            value.decor_mut().clear();
            value
        }
        _ => Value::from(text),
    }
}

/// Adds the group of every rank in no other, where it is not there.
fn add_ungrouped(item: &mut Item) {
    if entry_names(item).iter().any(|name| name == UNGROUPED) {
        return;
    }
    if let Item::Value(Value::Array(array)) = item {
        return array.push(InlineTable::from_iter([("name", UNGROUPED)]));
    }
    if item.as_table().is_some_and(Table::is_empty) {
        *item = Item::ArrayOfTables(ArrayOfTables::new());
    }
    if let Item::ArrayOfTables(tables) = item {
        tables.push(Table::from_iter([("name", UNGROUPED)]));
    }
}

fn entry_names(item: &mut Item) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(entry) = nth(item, names.len()) {
        let name = entry.get("name").or_else(|| entry.get("match"));
        let name = name.and_then(Item::as_str).map(str::to_owned);
        names.push(name.unwrap_or_else(|| names.len().to_string()));
    }
    names
}

fn select<'d>(item: &'d mut Item, entry: &str) -> Option<&'d mut dyn TableLike> {
    let names = entry_names(item);
    let by_name = names.iter().position(|name| name == entry);
    nth(item, by_name.or_else(|| entry.parse().ok())?)
}

fn nth(item: &mut Item, index: usize) -> Option<&mut dyn TableLike> {
    match item {
        Item::ArrayOfTables(tables) => tables.get_mut(index).map(|table| table as &mut dyn TableLike),
        Item::Value(Value::Array(array)) => {
            array.get_mut(index)?.as_inline_table_mut().map(|table| table as &mut dyn TableLike)
        }
        _ => None,
    }
}
