//! Groups of a job whose programs are known: what names a program then lists its ranks.

use crate::config::{Config, DEFAULT_TARGET, Group, Members, Target, UNGROUPED};
use crate::program::names;
use crate::units::RankSet;

/// Programs that have a group each, where none is configured; ranks of a job of more are the group `all`.
const MOST: usize = 64;

/// `config` for a job whose ranks run `programs`, as their command lines have them: groups that name a program list its
/// ranks, less those that another group lists or an earlier one names. Without any group, each of several programs is one.
///
/// The result is a configuration that needs no programs, as a trace stores it. A group of which no rank is stays as it is.
pub fn with_programs(mut config: Config, programs: &[(String, RankSet)]) -> Config {
    if config.groups.is_empty() {
        if (2..=MOST).contains(&programs.len()) {
            config.groups = of_programs(programs);
        }
        return config;
    }
    let mut taken: RankSet =
        config.groups.iter().filter_map(|group| group.members.listed()).cloned().collect();
    for group in &mut config.groups {
        let Members::Program(pattern) = &group.members else { continue };
        let own = programs.iter().filter(|(program, _)| pattern.takes(program)).map(|(_, ranks)| ranks);
        let ranks = own.cloned().collect::<RankSet>();
        let ranks: RankSet = ranks.iter().filter(|&rank| !taken.contains(rank)).map(|rank| rank.0).collect();
        if ranks.is_empty() {
            continue;
        }
        group.pinned = group.pinned.iter().filter(|&rank| ranks.contains(rank)).map(|rank| rank.0).collect();
        let members = ranks.len();
        if let Target::Static { ranks } = &mut group.target {
            *ranks = u64::from(*ranks).min(members) as u32;
        }
        for strata in config.strata.iter_mut().filter(|strata| strata.group == group.name) {
            strata.k = strata.k.map(|k| u64::from(k).min(members) as u32);
        }
        taken = [taken, ranks.clone()].into_iter().collect();
        group.members = Members::Listed(ranks);
    }
    config
}

/// A group for each program, with its name.
fn of_programs(programs: &[(String, RankSet)]) -> Vec<Group> {
    let called = names(&programs.iter().map(|(program, _)| program.as_str()).collect::<Vec<_>>());
    let group = |(name, (_, ranks)): (&str, &(String, RankSet))| {
        let first = ranks.iter().next().map_or(0, |rank| rank.0);
        let is_fit = !name.trim().is_empty() && name.trim() != UNGROUPED && !name.contains(char::is_control);
        Group {
            name: if is_fit { name.to_owned() } else { format!("program of rank {first}") },
            members: ranks.clone().into(),
            target: DEFAULT_TARGET,
            pinned: RankSet::default(),
        }
    };
    called.into_iter().zip(programs).map(group).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Clipping, Plan};
    use crate::units::Rank;

    fn job(programs: &[(&str, &str)]) -> Vec<(String, RankSet)> {
        let of = |&(name, ranks): &(&str, &str)| (name.to_owned(), RankSet::parse(ranks).unwrap());
        programs.iter().map(of).collect()
    }

    fn groups(text: &str, programs: &[(&str, &str)], ranks: u32) -> Vec<(String, String)> {
        let config = with_programs(Config::parse(text).unwrap().0, &job(programs));
        // The text of a trace needs no programs.
        let config = Config::parse(&config.to_toml()).unwrap().0;
        let plan = Plan::new(config, ranks).unwrap();
        plan.groups.into_iter().map(|group| (group.name, group.members.to_string())).collect()
    }

    fn named(groups: &[(&str, &str)]) -> Vec<(String, String)> {
        groups.iter().map(|&(name, ranks)| (name.to_owned(), ranks.to_owned())).collect()
    }

    #[test]
    fn each_program_is_a_group_unless_groups_are_configured() {
        let two = [("./ocean", "0-2"), ("/opt/air", "3-4")];
        assert_eq!(groups("", &two, 5), named(&[("ocean", "0-2"), ("air", "3-4")]));
        assert_eq!(groups("", &[("./ocean", "0-4")], 5), named(&[("all", "0-4")]));
        assert_eq!(groups("", &[], 5), named(&[("all", "0-4")]));
        // A rank of which no program is known.
        assert_eq!(groups("", &two, 6), named(&[("ocean", "0-2"), ("air", "3-4"), ("all", "5")]));
        assert_eq!(groups("", &[("a/x", "0"), ("b/x", "1")], 2), named(&[("a/x", "0"), ("b/x", "1")]));
        assert_eq!(
            groups("", &[("all", "1"), ("", "2"), ("a\nb", "0")], 3),
            named(&[("program of rank 1", "1"), ("program of rank 2", "2"), ("program of rank 0", "0")])
        );
        assert_eq!(
            groups("[[group]]\nname='A'\nmembers='1'\n", &two, 5),
            named(&[("A", "1"), ("all", "0,2-4")])
        );
        let many: Vec<(String, String)> = (0..65).map(|at| (format!("p{at}"), at.to_string())).collect();
        let many: Vec<(&str, &str)> =
            many.iter().map(|(name, ranks)| (name.as_str(), ranks.as_str())).collect();
        assert_eq!(groups("", &many, 65), named(&[("all", "0-64")]));
        assert_eq!(groups("", &many[..64], 64).len(), 64);
    }

    #[test]
    fn groups_name_programs_beside_lists_of_ranks() {
        let three = [("./ocean.x", "0-3"), ("./ocean.io", "4-5"), ("/opt/air", "6-9")];
        let of = |text: &str| groups(text, &three, 10);
        let text = "[[group]]\nname='water'\nprogram='ocean*'\nerror=0.02\n[[group]]\nname='rest'\n";
        assert_eq!(of(text), named(&[("water", "0-5"), ("rest", "6-9")]));
        // A list goes before a name, and an earlier name before a later one.
        let text = "[[group]]\nname='io'\nprogram='*.io'\n[[group]]\nname='water'\nprogram='ocean*'\npinned='1,3,7'\n\
                    sample_size=9\n[[group]]\nname='A'\nmembers='2-3'\n";
        assert_eq!(of(text), named(&[("io", "4-5"), ("water", "0-1"), ("A", "2-3"), ("all", "6-9")]));
        let config = with_programs(Config::parse(text).unwrap().0, &job(&three));
        let water = &config.groups[1];
        assert_eq!((water.pinned.to_string(), water.target), ("1".to_owned(), Target::Static { ranks: 2 }));
        assert_eq!(Clipping::of(&config, 10), None);
        let text = "[[group]]\nname='two'\nprogram='*.io'\nstratify='k-medoids'\nk=8\n";
        assert_eq!(of(text), named(&[("two", "4-5"), ("all", "0-3,6-9")]));
    }

    #[test]
    fn a_program_that_nobody_runs_is_said() {
        let text = "[[group]]\nname='ice'\nprogram='ice*'\n";
        let config = with_programs(Config::parse(text).unwrap().0, &job(&[("./air", "0-3")]));
        let clipping = Clipping::of(&config, 4).unwrap();
        assert_eq!(clipping.place(text), Some((3, 9)));
        assert_eq!(
            clipping.to_string(),
            "group \"ice\" has no rank that runs \"ice*\" and is in no other group, and is left out"
        );
        assert_eq!(groups(text, &[("./air", "0-3")], 4), named(&[("all", "0-3")]));
    }

    proptest! {
        /// Every rank is in one group, that of the first rule that takes it.
        #[test]
        fn every_rank_is_in_the_first_group_that_takes_it(
            programs in prop::collection::vec(0usize..4, 1..20),
            rules in prop::collection::vec((0usize..5, any::<bool>()), 1..5),
        ) {
            const NAMES: [&str; 4] = ["ocean", "ocean2", "air", "server"];
            const PATTERNS: [&str; 5] = ["ocean*", "*r", "server", "*", "none"];
            let mut job: Vec<(String, RankSet)> = Vec::new();
            for (at, name) in NAMES.iter().enumerate() {
                let own = (0u32..).zip(&programs).filter(|(_, program)| **program == at).map(|(rank, _)| rank);
                job.push((format!("/opt/{name}"), own.collect()));
            }
            let mut text = String::new();
            for (at, (rule, listed)) in rules.iter().enumerate() {
                let members = match listed {
                    true => format!("members = '{at}'"),
                    false => format!("program = '{}'", PATTERNS[*rule]),
                };
                text += &format!("[[group]]\nname = 'g{at}'\n{members}\n");
            }
            let ranks = programs.len() as u32;
            let config = with_programs(Config::parse(&text).unwrap().0, &job);
            let plan = Plan::new(Config::parse(&config.to_toml()).unwrap().0, ranks).unwrap();
            for (rank, program) in programs.iter().enumerate() {
                let listed = rules.iter().enumerate().position(|(at, (_, listed))| *listed && at == rank);
                let takes = |rule: usize| match PATTERNS[rule] {
                    "ocean*" => NAMES[*program].starts_with("ocean"),
                    "*r" => NAMES[*program].ends_with('r'),
                    "*" => true,
                    name => name == NAMES[*program],
                };
                let wanted = listed.or_else(|| rules.iter().position(|(rule, listed)| !listed && takes(*rule)));
                let wanted = wanted.map_or("all".to_owned(), |at| format!("g{at}"));
                let group = &plan.groups[plan.group_of(Rank(rank as u32))];
                prop_assert_eq!(&group.name, &wanted, "rank {}", rank);
            }
        }
    }
}
