//! The one table of keys: validation, suggestions and the documentation of `JOB.toml` read it.

/// One key of `JOB.toml`.
#[derive(Debug)]
pub struct Key {
    /// Table it stands in; empty for the top level.
    pub table: &'static str,
    /// Name within the table.
    pub name: &'static str,
    /// What its value must look like.
    pub shape: Shape,
    /// Value when absent, as written in TOML; empty when there is none.
    pub default: &'static str,
    /// One line for the reader.
    pub meaning: &'static str,
    /// Which values this version acts on.
    pub support: Support,
}

impl Key {
    /// Dotted path, `sampling.seed`.
    pub fn path(&self) -> String {
        if self.table.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.table, self.name) }
    }
}

/// What a value must look like, before its content is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A TOML integer.
    Integer,
    /// A TOML integer or float.
    Number,
    /// A number, or text such as `"1%"`.
    Share,
    /// A TOML string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// Not looked at: the key is refused whatever it says.
    Any,
}

/// Which values of a key this version acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All of them.
    Full,
    /// These only, because they ask for what happens anyway; the text says what to do instead.
    Only(&'static [&'static str], &'static str),
    /// None; the text says what to do instead.
    None(&'static str),
}

/// One table of `JOB.toml`.
#[derive(Debug)]
pub struct Table {
    /// Name.
    pub name: &'static str,
    /// Written `[[name]]`, any number of times.
    pub many: bool,
}

/// Every table.
pub const TABLES: &[Table] = &[
    Table { name: "sampling", many: false },
    Table { name: "window", many: false },
    Table { name: "metric", many: true },
    Table { name: "group", many: true },
    Table { name: "site", many: true },
    Table { name: "trace", many: false },
    Table { name: "output", many: false },
    Table { name: "agent", many: false },
];

const NO_SITES: &str = "remove it; every call site follows its group";

const fn key(
    table: &'static str,
    name: &'static str,
    shape: Shape,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { table, name, shape, default, meaning, support: Support::Full }
}

const fn limited(base: Key, support: Support) -> Key {
    Key { support, ..base }
}

use Shape::{Any, Boolean, Integer, Number, Share, Text, Word};

/// Every key, in the order of documentation.
#[rustfmt::skip] // One key a line reads as the table it is.
pub const KEYS: &[Key] = &[
    limited(key("", "sites", Any, "", "file with further [[site]] tables"), Support::None(NO_SITES)),
    key("sampling", "windows_per_update", Integer, "4", "windows between two directives, at least 1"),
    key("sampling", "update_mechanism", Word(&["subset", "global"]), "\"subset\"", "subset: the same ranks until the next update; global: every rank flips a coin each window"),
    key("sampling", "summaries", Word(&["census", "sampled"]), "\"census\"", "whose window summaries reach the client"),
    key("sampling", "selection", Word(&["retrospective", "predictive"]), "\"predictive\"", "decide about a window after or before it; this version only before"),
    key("sampling", "sizing", Word(&["neyman", "ampl-2008"]), "\"neyman\"", "formula that prices the sample; ampl-2008 needs sampled summaries"),
    key("sampling", "floor", Integer, "", "fewest ranks that a bound may ask for; 16, or 10 with ampl-2008, where not given"),
    key("sampling", "seed", Integer, "42", "seed of every random choice, from 0"),
    limited(key("sampling", "budget", Any, "", "bytes per second to keep at most"), Support::None("bound the sample by 'group.error' or 'group.sample_size'")),
    limited(key("sampling", "partners", Word(&["off", "keep"]), "\"off\"", "also keep a drawn rank's message partners"), Support::Only(&["off"], "pin the partners with 'group.pinned'")),
    key("window", "marker", Text, "\"period:250ms\"", "what closes a window: period:250ms or mpi:FUNCTION[@SITE]"),
    key("window", "every", Integer, "1", "markers per window, at least 1"),
    key("metric", "name", Text, "", "wall, mpi.time, compute.time, bytes.sent, bytes.received or calls"),
    key("metric", "event", Text, "\"*\"", "an MPI function, or \"*\" for the whole window"),
    key("metric", "role", Word(&["report", "guide"]), "\"report\"", "a guide's bound sizes the sample"),
    key("metric", "optional", Boolean, "false", "drop the metric where it cannot be measured, instead of refusing"),
    key("group", "name", Text, "", "unique in the file"),
    key("group", "members", Text, "", "ranks, as in \"0-127,200\"; disjoint from other groups"),
    key("group", "confidence", Number, "0.90", "confidence of the bound, in (0, 1)"),
    key("group", "error", Number, "0.08", "half-width relative to the mean, in (0, 1)"),
    key("group", "error_abs", Number, "", "half-width in the metric's unit (nanoseconds, bytes, calls), positive"),
    limited(key("group", "stratify", Word(&["off", "k-medoids"]), "\"off\"", "sample strata of the group separately"), Support::Only(&["off"], "declare the strata as groups of their own")),
    limited(key("group", "k", Any, "", "number of strata"), Support::None("declare the strata as groups of their own")),
    key("group", "sample_size", Integer, "", "keep exactly that many ranks, pinned ones included"),
    key("group", "pinned", Text, "\"\"", "ranks always kept, among the members"),
    limited(key("site", "match", Any, "", "call site the policy is for"), Support::None(NO_SITES)),
    limited(key("site", "trace", Any, "", "on, off or aggregate"), Support::None(NO_SITES)),
    limited(key("site", "error", Any, "", "overrides the group's"), Support::None(NO_SITES)),
    limited(key("site", "confidence", Any, "", "overrides the group's"), Support::None(NO_SITES)),
    key("trace", "structure", Word(&["all", "kept", "off"]), "\"kept\"", "whose call structure is stored; this version: kept windows'"),
    key("trace", "timing", Word(&["kept", "all", "off"]), "\"kept\"", "of which windows calls and their times are stored"),
    key("trace", "time_error", Number, "0", "allowed relative error of stored times, in [0, 1); this version stores exact times"),
    key("trace", "time_floor", Text, "\"0us\"", "times up to this need not be told apart; this version stores exact times"),
    key("trace", "call_sites", Boolean, "true", "store the call site with every call"),
    limited(key("trace", "call_path_depth", Integer, "1", "frames that tell call sites apart"), Support::Only(&["1"], "use 1")),
    key("output", "dir", Text, "\"ampl-{app}-{jobid}-{time}\"", "run directory; {app}, {jobid} and {time} are replaced"),
    key("output", "journal", Text, "\"node\"", "where journals live until merged: node, run, or a path with a '/'"),
    limited(key("output", "rank_summaries", Word(&["all", "sample", "off"]), "\"all\"", "whose per-rank window vectors are stored"), Support::Only(&["all"], "use \"all\"")),
    limited(key("output", "verify", Boolean, "false", "record everything and mark what would have been kept"), Support::Only(&["false"], "use 'trace.timing = \"all\"' to record every window")),
    key("agent", "max_overhead", Share, "\"1%\"", "share of the job's time that ampl may take; reported, not yet enforced"),
];

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
            assert!(!key.meaning.is_empty());
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
