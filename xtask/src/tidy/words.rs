//! Words of the house: how doc summaries begin, and what files are called ([docs/style.md](../../../docs/style.md)).

use std::path::Path;

/// First words of summaries that leave the reader to guess what comes back.
const FIRST: &[&str] = &["What", "Who", "Whose", "Whether", "Those", "That", "None", "Nothing", "See"];

/// File names that are a picture of the thing, where the field has a word.
const STEMS: &[&str] = &[
    "again",
    "aim",
    "alone",
    "begin",
    "deaf",
    "division",
    "far",
    "frantic",
    "heads",
    "lane",
    "lanes",
    "late",
    "little",
    "look",
    "masses",
    "meet",
    "meeting",
    "misfortune",
    "named",
    "nine",
    "others",
    "pace",
    "passing",
    "patience",
    "recipe",
    "room",
    "roomy",
    "second",
    "settle",
    "shelf",
    "turn",
    "unseen",
    "verdicts",
    "work",
];

/// Breach of the name of the file at `path`, in whatever language it is.
pub fn of_name(path: &str) -> Option<String> {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    STEMS
        .contains(&stem)
        .then(|| format!("{path}: a file is called by the field's word for what is in it, not `{stem}`"))
}

/// Breaches in the Rust file at `path`, which has that `text`.
pub fn of_file(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let (false, Some(summary)) = (in_comment, comment) {
            let first = summary.split_whitespace().next().unwrap_or_default();
            if let Some(word) =
                FIRST.iter().find(|word| first.trim_end_matches(|c: char| !c.is_alphanumeric()) == **word)
            {
                breaches.push(format!(
                    "{path}:{number}: a summary starts with a noun or a verb, not with {word}"
                ));
            }
        }
        in_comment = comment.is_some();
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_start_with_a_noun_or_a_verb() {
        let riddle = ["What", "it is."].join(" ");
        let text =
            format!("/// Number of ranks.\n/// {riddle}\npub a: u32,\n    /// {riddle}\n    //! {riddle}\n");
        assert_eq!(of_file("a/src/b.rs", &text).len(), 1);
        assert_eq!(of_file("a/src/b.rs", "//! None: see there.").len(), 1);
        assert_eq!(of_file("a/src/b.rs", "// Whatever\n/// Seeds of draws.\n").len(), 0);
    }

    #[test]
    fn files_have_names_of_the_field() {
        for path in ["a/src/shelf.rs", "tests/programs/shelf.c", "shelf.md", "a/shelf.f90"] {
            assert!(of_name(path).is_some(), "{path}");
        }
        assert_eq!(of_name("a/src/request_table.rs"), None);
    }
}
