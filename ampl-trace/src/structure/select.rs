//! Ranks by the functions that they call; the shared part of ranks is read once.

use super::{Group, JobStructure, RankStructure};

/// A rank that calls what was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// The rank.
    pub rank: u32,
    /// Number of words and positions of its structure.
    pub extent: u64,
    group: &'a Group,
    position: u32,
}

impl Selected<'_> {
    /// Its calls; `None` where the stored bytes make no sense.
    pub fn structure(&self) -> Option<RankStructure> {
        self.group.structure(self.position, self.rank)
    }
}

impl JobStructure {
    /// Ranks that call functions for which `wanted` is true, those of one body after those of another. The shared part
    /// of ranks is read once.
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
