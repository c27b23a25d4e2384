//! Ranks by what they call, without looking at what ranks share more than once.

use super::{Group, JobStructure, RankStructure};

/// A rank that calls what was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// The rank.
    pub rank: u32,
    /// How many words and positions its structure has.
    pub extent: u64,
    group: &'a Group,
    position: u32,
}

impl Selected<'_> {
    /// Its calls; `None` where what is stored of it makes no sense.
    pub fn structure(&self) -> Option<RankStructure> {
        self.group.structure(self.position, self.rank)
    }
}

impl JobStructure {
    /// Ranks that call functions of which `wanted` says so, those of one body after those of another. What ranks
    /// share is looked at once.
    pub fn select(&self, wanted: impl Fn(u16) -> bool) -> impl Iterator<Item = Selected<'_>> {
        let groups: Vec<(&Group, u64)> = self
            .groups
            .iter()
            .filter(|group| {
                let heads = group.body.threads.iter().flat_map(|thread| &thread.heads);
                heads.into_iter().any(|head| wanted(head.function))
            })
            .map(|group| (group, (group.first.words.len() + group.body.positions()) as u64))
            .collect();
        groups.into_iter().flat_map(|(group, extent)| {
            let ranks = (0..).zip(group.members());
            ranks.map(move |(position, rank)| Selected { rank, extent, group, position })
        })
    }
}
