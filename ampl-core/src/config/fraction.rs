//! Fractions as people write them: `0.05` and `5%`.

/// The fraction that `text` names, in percent or as a number; `None` for anything else.
pub fn fraction(text: &str) -> Option<f64> {
    let text = text.trim();
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    value.is_finite().then_some(value)
}

/// The fraction that `text` names in percent.
pub(super) fn percentage(text: &str) -> Option<f64> {
    text.trim().ends_with('%').then(|| fraction(text))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_and_numbers_are_fractions() {
        for (text, value) in [("0.05", 0.05), ("5%", 0.05), (" 2.5 % ", 0.025), ("1e-3", 0.001), ("90%", 0.9)]
        {
            assert!((fraction(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "5 percent", "five", "5%%", "nan", "inf%", "0,05"] {
            assert_eq!(fraction(text), None, "{text}");
        }
        assert_eq!((percentage("0.05"), percentage("5 %")), (None, Some(0.05)));
    }
}
