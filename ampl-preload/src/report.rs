//! Messages of ampl on standard error.

use std::io::Write as _;

use ampl_agent::uncancelled::Uncancelled;

/// Writes a message to standard error; standard output belongs to the application.
pub fn message(text: &str) {
    let _whole = Uncancelled::begin();
    // One write: ranks share the place. Write errors are ignored.
    let _ = std::io::stderr().write_all(format!("ampl: {}\n", plain(text)).as_bytes());
}

/// `text` without characters that steer a terminal: names in it are the program's.
fn plain(text: &str) -> String {
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
