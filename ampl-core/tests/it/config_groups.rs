//! Ranks of groups.

use ampl_core::config::*;

use crate::common::{accepted, one_error};

/// All ranks together have a group whose bound may be set, whether or not the text has it.
#[test]
fn one_group_has_every_rank_in_no_other() {
    let bound = |config: &Config, at: usize| match config.groups[at].target {
        Target::Bound { error: ErrorBound::Relative(error), .. } => error,
        other => panic!("{other:?}"),
    };
    for text in ["[[group]]\nname = 'R'\nerror = 0.1", "[[group]]\nname = 'R'\nmembers = '*'\nerror = 0.1"] {
        let config = accepted(text).0;
        assert_eq!((&config.groups[0].members, bound(&config, 0)), (&Members::Others, 0.1));
    }
    for (text, at) in [
        ("", 0),
        ("[[group]]\nname = 'all'\nerror = 0.3", 0),
        ("[[group]]\nname = 'A'\nmembers = '0-3'", 1),
        ("group = [{ name = 'A', members = '0-3' }]", 1),
        ("# group\n[sampling]\nseed = 1\n", 0),
    ] {
        let edited = Config::set(text, "group.all.error", "3%").unwrap();
        let edited = Config::set(&edited, "group.all.confidence", "0.99").unwrap();
        let config = accepted(&edited).0;
        assert_eq!(config.groups.len(), at + 1, "{edited}");
        assert_eq!((config.groups[at].name.as_str(), bound(&config, at)), ("all", 0.03), "{edited}");
        assert_eq!(Config::parse(&config.to_toml()).unwrap().0, config);
    }
    let listed = "[[group]]\nname = 'A'\nmembers = '0-3'\n";
    one_error(&format!("{listed}[[group]]\nname = 'R'\npinned = '3,9'"), "6:10", "ranks 3", "'pinned'");
    one_error("[[group]]\nname = 'R'\npinned = '3,9'\nsample_size = 1", "4:15", "1", "at least 2");
    one_error("[[group]]\nname = 'R'\n[[group]]\nname = 'S'\n", "4:8", "in group \"R\"", "members = ");
    one_error("[[group]]\nname = 'all'\nmembers = '0-3'", "2:8", "\"all\"", "no members");
    accepted("[[group]]\nname = 'R'\nstratify = 'k-medoids'\nk = 8");
}
