//! `BASE… -- NEW… --json`: options may follow the new runs.

use std::ffi::OsString;

use super::new_option;

/// `words` of a command line with the option that stands for `--` in its place, if the command is `diff`.
pub fn rewritten(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|command| command == "diff")
        && let Some(at) = words.iter().position(|word| word == "--")
    {
        words[at] = new_option();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_dashes_of_diff_are_replaced() {
        let of = |text: &str| -> Vec<String> {
            let words = rewritten(text.split(' ').map(OsString::from));
            words.into_iter().map(|word| word.into_string().unwrap()).collect()
        };
        assert_eq!(of("ampl diff a -- b --json").join(" "), "ampl diff a --new b --json");
        assert_eq!(of("ampl run -- mpirun diff").join(" "), "ampl run -- mpirun diff");
        assert_eq!(of("ampl diff a b").join(" "), "ampl diff a b");
    }
}
