//! Rust source as words, without comments and literals.

/// The identifiers and keywords of `text`, in order.
///
/// A scanner, not a parser: it knows comments, strings, raw strings and characters well enough
/// that a word inside them is not taken for code.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            if rest.starts_with("//") {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
            } else if rest.starts_with("/*") {
                rest = after_block_comment(rest);
            } else if let Some(after) = after_raw_string(rest) {
                rest = after;
            } else if first == '"' {
                rest = after_quoted(&rest[1..], '"');
            } else if first == '\'' {
                rest = after_tick(&rest[1..]);
            } else if first.is_alphanumeric() || first == '_' {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                rest = after;
                return Some(word);
            } else {
                rest = &rest[first.len_utf8()..];
            }
        }
    })
}

/// Text after the block comment that `text` starts with; comments nest.
fn after_block_comment(text: &str) -> &str {
    let mut depth = 0_u32;
    let mut rest = text;
    loop {
        if let Some(inside) = rest.strip_prefix("/*") {
            depth += 1;
            rest = inside;
        } else if let Some(after) = rest.strip_prefix("*/") {
            depth -= 1;
            rest = after;
            if depth == 0 {
                return rest;
            }
        } else {
            let mut characters = rest.chars();
            if characters.next().is_none() {
                return "";
            }
            rest = characters.as_str();
        }
    }
}

/// Text after a raw string, if `text` starts with one (`r"…"`, `br#"…"#`).
fn after_raw_string(text: &str) -> Option<&str> {
    let text = text.strip_prefix('b').or_else(|| text.strip_prefix('c')).unwrap_or(text).strip_prefix('r')?;
    let hashes = text.len() - text.trim_start_matches('#').len();
    let body = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&end).map_or("", |at| &body[at + end.len()..]))
}

/// Text after the closing `quote` of the literal whose inside `text` is.
fn after_quoted(text: &str, quote: char) -> &str {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote {
            break;
        }
    }
    characters.as_str()
}

/// Text after a tick: a character literal is skipped, a lifetime's name is not.
fn after_tick(text: &str) -> &str {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some('\\'), _) => after_quoted(text, '\''),
        (Some(_), Some('\'')) => characters.as_str(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_comments_and_literals_are_not_tokens() {
        let text = r##"fn a<'t>(x: &'t str) { b('"', '\'', "c \" d", r#"e " f"#, br"g") } // h
            /* i /* j */ k */ l"##;
        let found: Vec<&str> = tokens(text).collect();
        assert_eq!(found, ["fn", "a", "t", "x", "t", "str", "b", "l"]);
    }

    #[test]
    fn unfinished_text_ends_the_scan() {
        assert_eq!(tokens("a /* b").collect::<Vec<_>>(), ["a"]);
        assert_eq!(tokens("a \"b").collect::<Vec<_>>(), ["a"]);
        assert_eq!(tokens("rest r").collect::<Vec<_>>(), ["rest", "r"]);
    }
}
