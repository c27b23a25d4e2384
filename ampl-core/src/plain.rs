//! Text that steers no terminal.

/// `text` with U+FFFD for each control character but newline and tab: names of programs, records and runs may be another's.
pub fn plain(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t'), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_steer_no_terminal() {
        assert_eq!(plain("a\tb\n\u{1b}[2J\r\u{9b}1m"), "a\tb\n\u{fffd}[2J\u{fffd}\u{fffd}1m");
    }
}
