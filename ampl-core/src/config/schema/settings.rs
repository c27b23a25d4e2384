//! [`settings!`]: a table of the job file as one declaration, of which its struct, its defaults, its keys, its reader
//! and its writer are made.

use std::fmt::Write as _;

use toml::de::DeValue;

use super::{Key, Table};
use crate::config::error::Cause;

/// A table of the job file.
pub(in crate::config) trait Settings {
    /// The table itself.
    const TABLE: Table;

    /// Its keys, in the order of the documentation.
    const KEYS: &'static [Key];

    /// Sets the key of that name to `value`, which has the key's shape.
    fn set(&mut self, name: &str, value: &DeValue<'_>) -> Result<(), Cause>;

    /// Calls `line` with each key and its value as TOML, as far as there is one.
    fn each(&self, line: impl FnMut(&'static str, String));

    /// Appends the table as TOML.
    fn write(&self, out: &mut String) {
        let gap = if out.is_empty() { "" } else { "\n" };
        let (open, close) = Self::TABLE.brackets();
        // A String takes everything.
        let _ = writeln!(out, "{gap}{open}{}{close}", Self::TABLE.name);
        self.each(|name, value| {
            let _ = writeln!(out, "{name} = {value}");
        });
    }
}

/// Declares a table: its struct, and a row for each key.
///
/// ```text
/// [table] "what it is about" => pub struct Name {
///     field ("key"): Type = default, FORM, "meaning", options;
/// }
/// ```
///
/// The key's name may be left out where it is the field's. The form reads and writes the value, and describes its type and
/// range; options are methods of [`Key`] that say the rest.
macro_rules! settings {
    (
        $open:tt $about:literal => $vis:vis struct $name:ident {
            $($field:ident $(($key:literal))?: $type:ty = $default:expr, $form:expr, $meaning:literal $(, $option:ident($($value:tt)*))*;)+
        }
    ) => {
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $(#[doc = $meaning] $vis $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::config::schema::settings::Settings for $name {
            const TABLE: $crate::config::schema::Table = settings!(@table $open $about);

            const KEYS: &'static [$crate::config::schema::Key] = &[
                $($form.describe($crate::config::schema::Key::new(
                    Self::TABLE.name,
                    settings!(@name $field $($key)?),
                    $meaning,
                ))$(.$option($($value)*))*,)+
            ];

            fn set(
                &mut self,
                name: &str,
                value: &toml::de::DeValue<'_>,
            ) -> Result<(), $crate::config::error::Cause> {
                use $crate::config::form::Form as _;
                $(if name == settings!(@name $field $($key)?) {
                    self.$field = $form.read(value)?;
                })+
                Ok(())
            }

            fn each(&self, mut line: impl FnMut(&'static str, String)) {
                use $crate::config::form::Form as _;
                $(if let Some(value) = $form.write(&self.$field) {
                    line(settings!(@name $field $($key)?), value);
                })+
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
    (@table [[$table:ident]] $about:literal) => {
        $crate::config::schema::Table { name: stringify!($table), many: true, meaning: $about }
    };
    (@table [$table:ident] $about:literal) => {
        $crate::config::schema::Table { name: stringify!($table), many: false, meaning: $about }
    };
}
pub(in crate::config) use settings;
