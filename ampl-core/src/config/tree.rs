//! From TOML to known keys with values of the right shape: everything else becomes an error here.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::error::{Cause, ConfigError, ConfigErrors, Notice};
use super::form::{float, integer};
use super::schema::{self, KEYS, Key, Settings, Shape, TABLES};

/// Errors after which reading stops.
const MOST_ERRORS: usize = 100;

/// Most tables of a text: each is compared with all others of its kind.
const MOST_TABLES: usize = 10_000;

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

    /// `true` if there are so many errors that nobody would read more.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
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

/// The TOML in `text`.
///
/// # Errors
/// Offset of the first fault, and its cause in the parser's words.
pub(super) fn document(text: &str) -> Result<DeTable<'_>, (usize, Cause)> {
    check_depth(text)?;
    DeTable::parse(text).map(Spanned::into_inner).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        (error.span().map_or(0, |span| span.start), Cause::Syntax { message })
    })
}

/// # Errors
/// Offset of the first place that nests too deeply, and that cause.
pub(super) fn check_depth(text: &str) -> Result<(), (usize, Cause)> {
    let message = || format!("nested more than {DEEPEST} deep");
    too_deep(text).map_or(Ok(()), |at| Err((at, Cause::Syntax { message: message() })))
}

/// Most tables and arrays inside each other; a job file needs three.
const DEEPEST: usize = 16;

/// Offset of the first bracket or dotted key that nests too deeply.
///
/// The parser limits brackets and dotted keys one by one, not together. What it makes of both needs more stack to be freed
/// than a thread may have.
fn too_deep(text: &str) -> Option<usize> {
    // Of every open bracket, and outside: dots of the key so far, and `true` behind its equals sign.
    let mut levels = vec![(0, false)];
    let mut depth = 1;
    for token in Source::new(text).lex() {
        let inside = levels.len() > 1;
        let level = levels.last_mut()?;
        match token.kind() {
            TokenKind::Dot if !level.1 => {
                level.0 += 1;
                depth += 1;
            }
            TokenKind::Equals => level.1 = true,
            TokenKind::Comma | TokenKind::Newline => {
                depth -= level.0;
                *level = (0, false);
            }
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
                levels.push((0, false));
                depth += 1;
            }
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket if inside => {
                depth -= level.0 + 1;
                levels.pop();
            }
            _ => {}
        }
        if depth > DEEPEST {
            return Some(token.span().start());
        }
    }
    None
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
    value: &'d DeValue<'d>,
    at: usize,
}

impl Block<'_> {
    /// The table's settings. A value that is wrong goes to `report`, and the default stands in for it.
    pub(super) fn settings<S: Settings + Default>(&mut self, report: &mut Report<'_>) -> S {
        let mut settings = S::default();
        for Entry { key, value, at } in &self.entries {
            if let Err(cause) = settings.set(key.name, value) {
                report.error(*at, key.path(), cause);
                self.refused.push(key.name);
            }
        }
        settings
    }

    fn entry(&self, name: &str) -> Option<&Entry<'_>> {
        self.entries.iter().find(|entry| entry.key.name == name)
    }

    /// Byte offset of the value of `name`, or of the table when absent.
    pub(super) fn at(&self, name: &str) -> usize {
        self.entry(name).map_or(self.at, |entry| entry.at)
    }

    /// `true` if `name` was written, with a value of the right shape.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// `true` if `name` was written and already reported as wrong.
    pub(super) fn refused(&self, name: &str) -> bool {
        self.refused.contains(&name)
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.table)
    }
}

/// The blocks of `document`; only known keys with values of the right shape. Everything else is in `report`.
pub(super) fn read<'d>(document: &'d DeTable<'d>, report: &mut Report<'_>) -> Vec<Block<'d>> {
    let mut blocks = Vec::new();
    for (key, value) in document {
        if report.is_full() {
            break;
        }
        let (name, at) = (key.get_ref().as_ref(), key.span().start);
        if let Some(table) = schema::table(name) {
            match value.get_ref() {
                _ if table.many => read_many(table.name, key, value, report, &mut blocks),
                DeValue::Table(found) => {
                    blocks.push(read_block(table.name, value.span().start, found, report));
                }
                _ => {
                    let expected = format!("a table, [{name}]");
                    report.error(at, name, Cause::WrongType { expected, found: kind(key, value).into() });
                }
            }
        } else if let Some(known) = schema::find("", name) {
            if check_value(known, key, value, report) {
                // The only such key names a file, and settings are made of text alone.
                report.error(value.span().start, name, Cause::FileNotRead);
            }
        } else {
            report.error(at, name, unknown("", name));
        }
    }
    blocks
}

fn read_many<'d>(
    name: &'static str,
    key: &Spanned<DeString<'_>>,
    value: &'d Spanned<DeValue<'d>>,
    report: &mut Report<'_>,
    blocks: &mut Vec<Block<'d>>,
) {
    let wrong =
        |found: &str| Cause::WrongType { expected: format!("tables, [[{name}]]"), found: found.into() };
    let DeValue::Array(array) = value.get_ref() else {
        return report.error(key.span().start, name, wrong(kind(key, value)));
    };
    if array.len() > MOST_TABLES {
        let (found, expected) = (array.len().to_string(), format!("at most {MOST_TABLES} tables"));
        return report.error(key.span().start, name, Cause::Invalid { found, expected });
    }
    for value in array {
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Table(table) => blocks.push(read_block(name, at, table, report)),
            other => report.error(at, name, wrong(value_kind(other))),
        }
    }
}

fn read_block<'d>(
    table: &'static str,
    at: usize,
    found: &'d DeTable<'d>,
    report: &mut Report<'_>,
) -> Block<'d> {
    let (mut entries, mut refused) = (Vec::new(), Vec::new());
    for (name, value) in found {
        if report.is_full() {
            break;
        }
        let Some(key) = schema::find(table, name.get_ref()) else {
            let name_at = name.span().start;
            report.error(name_at, format!("{table}.{}", name.get_ref()), unknown(table, name.get_ref()));
            continue;
        };
        match check_value(key, name, value, report) {
            true => entries.push(Entry { key, value: value.get_ref(), at: value.span().start }),
            false => refused.push(key.name),
        }
    }
    Block { table, at, entries, refused }
}

/// `true` if the value fits `key`, which is written as `name`.
fn check_value(
    key: &'static Key,
    name: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    report: &mut Report<'_>,
) -> bool {
    let mut refuse = |at, cause| {
        report.error(at, key.path(), cause);
        false
    };
    let (at, found) = (value.span().start, value.get_ref());
    let fits = match key.shape {
        Shape::Integer => found.is_integer(),
        Shape::Number => found.is_integer() || found.is_float(),
        Shape::Fraction => found.is_integer() || found.is_float() || found.is_str(),
        Shape::Text | Shape::Word(_) => found.is_str(),
        Shape::Boolean => found.is_bool(),
        Shape::Count => found.is_integer() || found.as_str() == Some("auto"),
    };
    if !fits {
        let (expected, found) = (expectation(key.shape).into(), kind(name, value).into());
        let at = if is_header(name, value) { name.span().start } else { at };
        return refuse(at, Cause::WrongType { expected, found });
    }
    // The parser leaves numbers as they are written.
    let too_large = match found {
        DeValue::Integer(_) if integer(found).is_none() => Some("integer number overflowed"),
        DeValue::Float(_) if float(found).is_none() => Some("floating-point number overflowed"),
        _ => None,
    };
    if let Some(message) = too_large {
        return refuse(at, Cause::Syntax { message: message.into() });
    }
    if let (Shape::Word(words), Some(word)) = (key.shape, found.as_str())
        && !words.contains(&word)
    {
        let nearest = schema::nearest(word, words.iter().copied());
        return refuse(at, Cause::UnknownWord { word: word.to_owned(), allowed: words.to_vec(), nearest });
    }
    true
}

fn unknown(table: &str, name: &str) -> Cause {
    let keys = KEYS.iter().filter(|key| key.table == table).map(|key| key.name);
    let tables = TABLES.iter().filter(|_| table.is_empty()).map(|table| table.name);
    Cause::UnknownKey { nearest: schema::nearest_key(table, name), known: tables.chain(keys).collect() }
}

/// `true` if the value has a line of its own, `[key]` or `[[key]]`, or follows from dotted keys: its place is not
/// behind its key.
pub(super) fn is_header(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> bool {
    value.span().start <= key.span().start
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

fn kind(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::Array(_) if is_header(key, value) => "an array of tables",
        found => value_kind(found),
    }
}

fn value_kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
