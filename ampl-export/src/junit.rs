//! JUnit XML, as GitLab, GitHub actions and Jenkins read it: a test case for each rule.

use std::io::{self, Write};

/// Answer of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It has no answer.
    Skipped,
}

/// A test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Its answer.
    pub answer: Answer,
    /// Reason, in one line.
    pub message: String,
    /// More lines about it.
    pub details: String,
}

/// Writes a suite of `cases`.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, suite: &str, cases: &[Case]) -> io::Result<()> {
    let number = |answer: Answer| cases.iter().filter(|case| case.answer == answer).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\"",
        cases.len(),
        number(Answer::Failed),
        number(Answer::Skipped)
    );
    let suite = escaped(suite);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"{suite}\" {counts}>\n  <testsuite name=\"{suite}\" {counts}>")?;
    for case in cases {
        let (name, message) = (escaped(&case.name), escaped(&case.message));
        write!(out, "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"0\">")?;
        match case.answer {
            Answer::Passed => {}
            Answer::Failed => {
                let details = escaped(&case.details);
                write!(out, "<failure message=\"{message}\" type=\"change\">{details}</failure>")?;
            }
            Answer::Skipped => write!(out, "<skipped message=\"{message}\"/>")?,
        }
        if case.answer == Answer::Passed && !case.message.is_empty() {
            write!(out, "<system-out>{message}</system-out>")?;
        }
        writeln!(out, "</testcase>")?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

/// `text` in an attribute or between tags; characters that XML cannot have are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_and_texts_escaped() {
        let case = |name: &str, answer: Answer| Case {
            name: name.into(),
            answer,
            message: "a \"b\" & <c>\u{1}".into(),
            details: "one\ntwo".into(),
        };
        let cases =
            [case("calls!=0", Answer::Passed), case("x>5%", Answer::Failed), case("y", Answer::Skipped)];
        let mut out = Vec::new();
        write(&mut out, "ampl diff", &cases).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text.matches("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"").count(),
            2,
            "{text}"
        );
        assert!(text.contains("name=\"x&gt;5%\"") && text.contains("one&#10;two</failure>"), "{text}");
        assert!(text.contains("<skipped message=\"a &quot;b&quot; &amp; &lt;c&gt;\u{fffd}\"/>"), "{text}");
        assert_eq!(text.matches("<testcase").count(), text.matches("</testcase>").count());
    }
}
