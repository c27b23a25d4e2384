//! Rules in a file.

use serde::Deserialize;

use super::rule::Rule;

/// Answer that an inconclusive comparison counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settled {
    /// As a pass.
    Pass,
    /// As a failure.
    Fail,
}

/// Contents of a file of rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleFile {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Confidence of intervals and tests, in (0, 1).
    pub confidence: Option<f64>,
    /// Answer that an inconclusive comparison counts as.
    pub inconclusive: Option<Settled>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    confidence: Option<f64>,
    inconclusive: Option<Settled>,
    #[serde(default)]
    rule: Vec<One>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    fail_if: String,
    floor: Option<String>,
}

impl RuleFile {
    /// The rules that `text` states.
    ///
    /// # Errors
    /// The fault, with the rule that has it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if file.confidence.is_some_and(|share| !(share > 0.0 && share < 1.0)) {
            return Err("confidence is not between 0 and 1".into());
        }
        let rule = |one: &One| {
            let rule = Rule::parse(&one.fail_if);
            let rule = rule.and_then(|rule| match &one.floor {
                Some(floor) => rule.with_floor(floor),
                None => Ok(rule),
            });
            rule.map_err(|error| format!("rule '{}': {error}", one.fail_if))
        };
        let rules = file.rule.iter().map(rule).collect::<Result<_, _>>()?;
        Ok(Self { rules, confidence: file.confidence, inconclusive: file.inconclusive })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_rules_are_read() {
        let text = "confidence = 0.9\ninconclusive = \"pass\"\n[[rule]]\nfail_if = \"elapsed>5%\"\nfloor = \"10ms\"\n\
                    [[rule]]\nfail_if = \"calls!=0\"\n";
        let file = RuleFile::parse(text).unwrap();
        assert_eq!(
            (file.confidence, file.inconclusive, file.rules.len()),
            (Some(0.9), Some(Settled::Pass), 2)
        );
        assert_eq!(file.rules[0].floor, Some(1e7));
        for (text, word) in [
            ("[[rule]]\nfail_iff = \"calls!=0\"", "fail_iff"),
            ("[[rule]]\nfail_if = \"calls\"", "comparison"),
            ("[[rule]]\nfail_if = \"calls>0\"\nfloor = \"x\"", "'x'"),
            ("confidence = 2.0", "confidence"),
            ("inconclusive = \"maybe\"", "maybe"),
        ] {
            let error = RuleFile::parse(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
