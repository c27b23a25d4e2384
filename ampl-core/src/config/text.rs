//! [`text`]: the bytes of a job file as text, or why they are none.

/// Longest job file, bytes; devices are longer.
pub const LONGEST: u64 = 1 << 24;

/// First bytes of files that are passed as a job file by mistake.
const KINDS: [(&[u8], &str); 6] = [
    (b"\x7fELF", "a program"),
    (b"AMPL", "a trace or a journal"),
    (b"\x1f\x8b", "a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a compressed file"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
];

/// The text of a job file with those bytes. Of a longer one, [`LONGEST`] + 1 bytes are enough.
///
/// # Errors
/// Reason why it is no job file, as the end of a sentence: too long, binary, or not UTF-8.
pub fn text(bytes: Vec<u8>) -> Result<String, String> {
    if let Some((_, what)) = KINDS.iter().find(|(begins, _)| bytes.starts_with(begins)) {
        return Err(format!("it is {what}"));
    }
    if bytes.contains(&0) {
        return Err("it is a binary file".to_owned());
    }
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it has more than {} MiB", LONGEST >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        format!("it is not UTF-8 on line {}", sound.iter().filter(|&&byte| byte == b'\n').count() + 1)
    })
}

/// First line of a text that has another origin than the variable which carries it.
const ORIGIN: &str = "# ampl: from ";

/// `text` behind a line that names its `origin`, for messages; without it where that is no single line.
pub fn with_origin(text: &str, origin: &str) -> String {
    match origin.is_empty() || origin.contains(char::is_control) {
        true => text.to_owned(),
        false => format!("{ORIGIN}{origin}\n{text}"),
    }
}

/// The origin that the first line of `text` names, if it does, and the rest.
pub fn split_origin(text: &str) -> (Option<&str>, &str) {
    let named = text.strip_prefix(ORIGIN).and_then(|rest| rest.split_once('\n'));
    named.map_or((None, text), |(origin, rest)| (Some(origin), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_named() {
        assert_eq!(text(b"a = 'b'\n".to_vec()), Ok("a = 'b'\n".into()));
        for (bytes, why) in [
            (&b"\x7fELF\x02"[..], "a program"),
            (b"seed = \0", "binary"),
            (b"a = 1\n\n\xc3", "UTF-8 on line 3"),
        ] {
            assert!(text(bytes.to_vec()).is_err_and(|found| found.contains(why)), "{why}");
        }
        assert!(text(vec![b'\n'; LONGEST as usize]).is_ok());
        assert_eq!(text(vec![b'\n'; LONGEST as usize + 1]), Err("it has more than 16 MiB".into()));
    }
}
