//! [`Config::inline_sites`]: `sites = "FILE"`, put in its place before the text is parsed.

use super::Config;
use super::error::{Cause, ConfigError, ConfigErrors};
use super::tree::{self, Report};

/// Reason why a file of `[[site]]` tables cannot take the place of `sites`.
#[derive(Clone, Debug, PartialEq)]
pub enum SitesFault {
    /// Wrong in the job's text: no file of that name can be read.
    Here(ConfigError),
    /// Wrong in the file.
    There {
        /// The file, as the job's text names it.
        file: String,
        /// Errors in the file; lines and columns are the file's.
        errors: ConfigErrors,
    },
}

impl Config {
    /// `text` with the tables of the file that `sites` names instead of that key; lines keep their numbers.
    ///
    /// `read` gives the text of a file, or why there is none. A text that is no TOML, or whose `sites` is no text,
    /// comes back unchanged: [`Config::parse`] reports its errors.
    ///
    /// # Errors
    /// The file cannot be read, or has anything but sound `[[site]]` tables.
    pub fn inline_sites(
        text: &str,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<String, SitesFault> {
        let unchanged = || Ok(text.to_owned());
        let Ok(document) = tree::document(text) else { return unchanged() };
        let Some((key, value)) = document.get_key_value("sites") else { return unchanged() };
        let Some(file) = value.get_ref().as_str() else { return unchanged() };
        let (from, value) = (key.span(), value.span());
        let here = |cause| {
            let (line, column) = Report::new(text).place(value.start);
            SitesFault::Here(ConfigError { line, column, key: "sites".into(), cause })
        };
        let fail = |error| here(Cause::Unreadable { file: file.to_owned(), error });
        if text[from.start..value.end].contains('\n') {
            return Err(fail("its name has a line break".to_owned()));
        }
        let tables = read(file).map_err(fail)?;
        check(&tables).map_err(|errors| SitesFault::There { file: file.to_owned(), errors })?;
        let (before, after) = text.split_at(from.start);
        let inlined = format!("{before}# {}\n\n# From {file:?}:\n{tables}", after.trim_end_matches('\n'));
        Ok(inlined)
    }
}

/// Checks that `tables` has sound `[[site]]` tables and nothing else.
fn check(tables: &str) -> Result<(), ConfigErrors> {
    let mut report = Report::new(tables);
    if let Ok(document) = tree::document(tables) {
        for (key, value) in &document {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if name == "sites" {
                let expected = "the [[site]] tables themselves: a file of sites names no other";
                let found = "in a file of sites".to_owned();
                report.error(at, name, Cause::Invalid { found, expected: expected.to_owned() });
            } else if name != "site" {
                let nearest = super::schema::nearest(name, ["site"]).map(str::to_owned);
                report.error(at, name, Cause::UnknownKey { nearest, known: vec!["site"] });
            } else if !value.get_ref().is_array() || !tree::is_header(key, value) {
                // Tables are appended to the job's own, which only this form allows.
                let (expected, found) = ("tables, [[site]]".to_owned(), "another form of them".to_owned());
                report.error(at, name, Cause::WrongType { expected, found });
            }
        }
    }
    report.finish()?;
    Config::parse(tables).map(|_| ())
}
