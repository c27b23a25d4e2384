//! Bytes as a file of rules, and as one rule: refused with a reason, or rules whose own text states them again.

use ampl_analysis::comparison::{Rule, RuleFile};

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match RuleFile::parse(&text) {
        Ok(file) => {
            assert!(file.confidence.is_none_or(|confidence| confidence > 0.0 && confidence < 1.0));
            file.rules.iter().for_each(holds);
        }
        Err(why) => assert!(!why.is_empty()),
    }
    match Rule::parse(&text) {
        Ok(rule) => {
            assert_eq!(Rule::parse(&rule.text).as_ref(), Ok(&rule));
            holds(&rule);
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

/// Asks `rule` about changes.
fn holds(rule: &Rule) {
    for change in [0.0, -0.5, 1e300, -1e300] {
        let _ = rule.holds(change, change);
        assert!(!rule.reference(change).is_nan(), "{rule:?}");
    }
}
