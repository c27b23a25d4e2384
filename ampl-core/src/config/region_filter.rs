//! Regions that are recorded, by their names.

use std::fmt;

use super::error::Cause;

/// Patterns of names, in which `*` stands for any characters.
///
/// A name is taken where a pattern matches it, or there is none but those behind `!`; and where none of these matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionFilter {
    taken: Vec<String>,
    left_out: Vec<String>,
}

impl RegionFilter {
    /// The patterns in `text`, with commas between them.
    pub(super) fn parse(text: &str) -> Result<Self, Cause> {
        let mut filter = Self::default();
        for pattern in text.split(',').map(str::trim) {
            let (patterns, pattern) = match pattern.strip_prefix('!') {
                Some(pattern) => (&mut filter.left_out, pattern.trim_start()),
                None => (&mut filter.taken, pattern),
            };
            if pattern.is_empty() || pattern.contains(char::is_control) {
                return Err(Cause::Invalid {
                    found: format!("{text:?}"),
                    expected: "names with commas between them, such as \"solve*,!tiny\"".to_owned(),
                });
            }
            patterns.push(pattern.to_owned());
        }
        // Everything is what no pattern means.
        if filter.taken.iter().any(|pattern| pattern == "*") {
            filter.taken.clear();
        }
        Ok(filter)
    }

    /// True where it takes the region of that name.
    pub fn takes(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.taken.is_empty() || any(&self.taken)) && !any(&self.left_out)
    }

    /// True where it takes every region.
    pub fn takes_all(&self) -> bool {
        self.taken.is_empty() && self.left_out.is_empty()
    }
}

impl fmt::Display for RegionFilter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.left_out.iter().map(|pattern| format!("!{pattern}"));
        let all: Vec<String> = self.taken.iter().cloned().chain(left_out).collect();
        out.write_str(if all.is_empty() { "*" } else { "" })?;
        out.write_str(&all.join(","))
    }
}

/// True where `name` is `pattern` with something in place of each `*`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').collect::<Vec<_>>();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        // The first place leaves the most behind it.
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(text: &str) -> RegionFilter {
        RegionFilter::parse(text).unwrap()
    }

    #[test]
    fn patterns_take_and_leave_out() {
        for (text, taken, left_out) in [
            ("*", &["a", ""][..], &[][..]),
            ("solve", &["solve"], &["solver", "asolve", ""]),
            ("solve*", &["solve", "solver"], &["resolve"]),
            ("*lv*r", &["solver", "lvr", "lvlvr"], &["solve", "lr"]),
            ("a*,!ab*", &["a", "ac"], &["ab", "abc", "c"]),
            ("!tiny", &["a", "tinyer"], &["tiny"]),
            ("!*", &[], &["a", ""]),
            ("aa*aa", &["aaaa"], &["aaa", "aa"]),
        ] {
            let filter = filter(text);
            assert!(taken.iter().all(|name| filter.takes(name)), "{text}");
            assert!(!left_out.iter().any(|name| filter.takes(name)), "{text}");
        }
        for text in ["", "a,", "!", "a,,b"] {
            assert!(RegionFilter::parse(text).is_err(), "{text:?}");
        }
    }

    /// As a person would match: character by character.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) if naive(rest, name) => true,
            (Some((b'*', _)), Some((_, name))) => naive(pattern, name),
            (Some((own, rest)), Some((other, name))) => own == other && naive(rest, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn stars_match_as_they_should(pattern in "[ab*]{1,8}", name in "[ab]{0,8}") {
            prop_assert_eq!(matches(&pattern, &name), naive(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn text_comes_back(patterns in prop::collection::vec("!?[a-z:*]{1,5}", 1..5)) {
            let filter = filter(&patterns.join(","));
            prop_assert_eq!(&RegionFilter::parse(&filter.to_string()).unwrap(), &filter);
        }
    }
}
