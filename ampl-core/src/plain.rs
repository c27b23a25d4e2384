//! Text that steers no terminal.

/// True for characters that steer a terminal: controls but newline and tab, and those that turn the direction of text, which
/// make a name look like another one.
pub fn steers(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => letter.is_control(),
    }
}

/// `text` with U+FFFD for each character that [steers]: names of programs, records and runs may be another's.
pub fn plain(text: &str) -> String {
    text.replace(steers, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_steer_no_terminal() {
        assert_eq!(plain("a\tb\n\u{1b}[2J\r\u{9b}1m"), "a\tb\n\u{fffd}[2J\u{fffd}\u{fffd}1m");
        assert_eq!(plain("exe\u{202e}txt\u{2066}é–"), "exe\u{fffd}txt\u{fffd}é–");
    }
}
