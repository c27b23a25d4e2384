//! Groups that name more ranks than the job has: what is left of them, and the one message about it.

use std::fmt;

use crate::config::{Config, Members, ProgramPattern, Target};
use crate::units::RankSet;

/// Groups of a configuration that do not fit a job of some size; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clipping {
    ranks: u32,
    /// Index and name of a group, and what becomes of it.
    groups: Vec<(usize, String, Fate)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// Fewer members.
    Clipped { from: RankSet, to: RankSet },
    /// Group of which no rank is in the job.
    LeftOut(RankSet),
    /// Group of a program that no rank runs, or of which other groups have all ranks.
    NoProgram(ProgramPattern),
    /// Group of all other ranks, of which there are none.
    Empty,
    /// Fewer ranks than its sample was to have.
    SmallerSample { from: u32, to: u32 },
    /// Pinned ranks that are not in the job.
    Unpinned(RankSet),
}

impl Clipping {
    /// Groups of `config` that do not fit a job of `ranks` processes; `None` if all fit. The programs of the job must be
    /// known ([`super::with_programs`]): a group that names one still has no rank.
    pub fn of(config: &Config, ranks: u32) -> Option<Self> {
        let others = others(config, ranks);
        let mut groups = Vec::new();
        for (index, group) in config.groups.iter().enumerate() {
            let mut note = |fate| groups.push((index, group.name.clone(), fate));
            let members = match &group.members {
                Members::Listed(listed) => listed.below(ranks),
                Members::Program(_) => RankSet::default(),
                Members::Others => others.clone(),
            };
            match &group.members {
                Members::Listed(listed) if members.is_empty() => note(Fate::LeftOut(listed.clone())),
                Members::Listed(listed) if members != *listed => {
                    note(Fate::Clipped { from: listed.clone(), to: members.clone() });
                }
                Members::Program(pattern) => note(Fate::NoProgram(pattern.clone())),
                Members::Others if members.is_empty() => note(Fate::Empty),
                Members::Others if group.pinned.below(ranks) != group.pinned => {
                    note(Fate::Unpinned(group.pinned.clone()));
                }
                _ => {}
            }
            if let Target::Static { ranks: from } = group.target
                && !members.is_empty()
                && members.len() < u64::from(from)
            {
                note(Fate::SmallerSample { from, to: members.len() as u32 });
            }
        }
        (!groups.is_empty()).then_some(Self { ranks, groups })
    }

    /// Line and column of the first of these groups' members in `text`, the configuration's, or of what makes it too
    /// large; `None` where they are not there.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        let (index, _, fate) = self.groups.first()?;
        let key = match fate {
            Fate::Clipped { .. } | Fate::LeftOut(_) => "group.members",
            Fate::NoProgram(_) => "group.program",
            Fate::Empty => "group.name",
            Fate::SmallerSample { .. } => "group.sample_size",
            Fate::Unpinned(_) => "group.pinned",
        };
        Config::place(text, key, *index)
    }

    /// The line to print: `ampl: <what> (<place>): <what happens instead>`.
    pub fn render(&self, place: &str) -> String {
        format!("ampl: the job has ranks 0-{} ({place}): {self}", self.ranks.saturating_sub(1))
    }
}

impl fmt::Display for Clipping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (_, name, fate)) in self.groups.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "; " })?;
            write!(f, "group \"{name}\" ")?;
            match fate {
                Fate::Clipped { from, to } => write!(f, "has {} of its {}", short(to), short(from))?,
                Fate::LeftOut(from) => write!(f, "has none of its {} and is left out", short(from))?,
                Fate::NoProgram(pattern) => {
                    write!(
                        f,
                        "has no rank that runs \"{pattern}\" and is in no other group, and is left out"
                    )?;
                }
                Fate::Empty => f.write_str("has no rank, as all are in other groups, and is left out")?,
                Fate::SmallerSample { from, to: 1 } => write!(f, "keeps its only rank instead of {from}")?,
                Fate::SmallerSample { from, to } => write!(f, "keeps {to} ranks instead of {from}")?,
                Fate::Unpinned(pinned) => write!(f, "pins those of {} that are there", short(pinned))?,
            }
        }
        Ok(())
    }
}

/// The ranks that no group of `config` lists, of a job of that many.
pub(super) fn others(config: &Config, ranks: u32) -> RankSet {
    let listed = config.groups.iter().filter_map(|group| group.members.listed());
    listed.cloned().collect::<RankSet>().complement(ranks)
}

/// A set of ranks in a sentence: long ones lose their middle.
fn short(ranks: &RankSet) -> String {
    let text = ranks.to_string();
    let parts: Vec<&str> = text.split(',').collect();
    match parts[..] {
        [first, second, .., last] if parts.len() > 6 => format!("{first},{second},...,{last}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn said(text: &str, ranks: u32) -> Option<String> {
        let config = Config::parse(text).unwrap().0;
        let clipping = Clipping::of(&config, ranks)?;
        let (line, column) = clipping.place(text)?;
        Some(clipping.render(&format!("job.toml:{line}:{column}")))
    }

    fn groups(text: &str, ranks: u32) -> Vec<(String, String, String, Target)> {
        let plan = Plan::new(Config::parse(text).unwrap().0, ranks).unwrap();
        let shown = |set: &RankSet| set.to_string();
        let group = plan.groups.into_iter();
        group.map(|group| (group.name, shown(&group.members), shown(&group.pinned), group.target)).collect()
    }

    const STUDY: &str = "[[group]]\nname = 'near'\nmembers = '0-3'\nerror = 0.03\npinned = '0,3'\n\
                         [[group]]\nname = 'far'\nmembers = '8-63'\nsample_size = 9\n\
                         [[group]]\nname = 'all'\nerror = 0.2\n";

    #[test]
    fn one_job_file_fits_jobs_of_any_size() {
        let names = |ranks| {
            let groups = groups(STUDY, ranks);
            groups.into_iter().map(|(name, members, ..)| format!("{name}:{members}")).collect::<Vec<_>>()
        };
        assert_eq!(names(128), ["near:0-3", "far:8-63", "all:4-7,64-127"]);
        assert_eq!(names(64), ["near:0-3", "far:8-63", "all:4-7"]);
        assert_eq!(names(12), ["near:0-3", "far:8-11", "all:4-7"]);
        assert_eq!(names(8), ["near:0-3", "all:4-7"]);
        assert_eq!(names(2), ["near:0-1"]);
        assert_eq!(groups(STUDY, 12)[1].3, Target::Static { ranks: 4 });
        assert_eq!(groups(STUDY, 2)[0].2, "0");
        for ranks in 1..80 {
            let plan = Plan::new(Config::parse(STUDY).unwrap().0, ranks).unwrap();
            assert_eq!(plan.groups.iter().map(|group| group.members.len()).sum::<u64>(), u64::from(ranks));
        }
    }

    #[test]
    fn one_message_says_what_becomes_of_them() {
        assert_eq!(said(STUDY, 64), None);
        assert_eq!(
            said(STUDY, 12).unwrap(),
            "ampl: the job has ranks 0-11 (job.toml:8:11): group \"far\" has 8-11 of its 8-63; group \"far\" keeps 4 \
             ranks instead of 9"
        );
        assert_eq!(
            said(STUDY, 3).unwrap(),
            "ampl: the job has ranks 0-2 (job.toml:3:11): group \"near\" has 0-2 of its 0-3; group \"far\" has none of \
             its 8-63 and is left out; group \"all\" has no rank, as all are in other groups, and is left out"
        );
        let rest = "[[group]]\nname = 'R'\nmembers = '*'\nsample_size = 9\npinned = '2,7'\n";
        assert_eq!(
            said(rest, 4).unwrap(),
            "ampl: the job has ranks 0-3 (job.toml:5:10): group \"R\" pins those of 2,7 that are there; group \"R\" keeps 4 ranks \
             instead of 9"
        );
        assert_eq!(groups(rest, 4)[0].2, "2");
        let many = "[[group]]\nname = 'g'\nmembers = '1,3,5,7,9,11,13,15'\n";
        assert!(said(many, 2).unwrap().ends_with("has 1 of its 1,3,...,15"));
    }

    /// Where every listed rank is beyond the job, the defaults hold for those that are there.
    #[test]
    fn ranks_of_no_group_are_group_all() {
        let text = "[[group]]\nname = 'far'\nmembers = '100-200'\nerror = 0.01\n";
        let [(name, members, ..)] = &groups(text, 4)[..] else { panic!() };
        assert_eq!((name.as_str(), members.as_str()), ("all", "0-3"));
    }
}
