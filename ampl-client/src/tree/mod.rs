//! The reduction tree between agents and client.
//!
//! # What travels
//! No message is longer than the plan says, whatever the number of ranks, and one per direction is under way
//! on an edge: the next leaves when the receiver has begun to take the one before. A node that cannot send
//! merges what waits into ranges of windows; one that cannot receive, because its process computes or is
//! blocked, costs its children nothing more than that.
//!
//! # Stragglers
//! A node passes a window on once, when every contributor (its own rank and each child's subtree) has
//! reported it or has finished; what is added up then is frozen. A contributor that stays behind by
//! more than a limit, in windows and in time, is waited for no longer: the window goes up with as many
//! rank-windows as `reported` says, flagged `late`, and what it brings afterwards is dropped and counted.
//! As soon as it brings a window that is still open it is waited for again. A rank that has finished
//! is not late, only missing: `reported` is smaller than the population then, and no number that rests on
//! it is called exact.
//!
//! Stragglers need no word from the client: whether a rank keeps a window is drawn from the directive
//! that it knows, and stored with that probability. So the late ones are a stratum of their own, kept at
//! their predictive probability, and weights make estimates right for both.
//!
//! # What a transport may do
//! MPI neither loses nor repeats a message. Another transport may do both; nothing is then counted twice
//! and no node waits for ever, because every message can be taken again or missed:
//! - Windows ascend on an edge, so their numbers are sequence numbers. What was taken or overtaken is
//!   ignored; what is missing when a later one arrives is not asked for again, and those windows are
//!   flagged.
//! - The number of finished ranks only grows; of directives the one with the highest update counts.
//! - Only the last message of an edge is not made up for by a later one. [`Node::repeat_end`] sends it again, and its
//!   receiver answers again.
//! - A [`StepAnnouncement`](ampl_core::message::StepAnnouncement) is sent once. Ranks that miss it keep the period, and say so.
//!
//! A transport that breaks for good is an edge that has fallen silent: the ranks behind it are missing from every
//! window, which is flagged, and at the end they are waited for until the finalize time-out.

mod error;
mod fits;
mod node;
mod retrospective;
mod ring;
mod source;
mod spares;
mod stratification;
mod window_reduction;

pub use error::TreeError;
pub use node::Node;
pub use retrospective::WindowDecision;

use ampl_core::units::Rank;

/// Children of a node, by default.
pub const ARITY: u32 = 8;

/// Complete windows that wait for a busy edge before they merge into ranges.
pub const RING: usize = 64;

/// A complete k-ary tree over the ranks of a job, known everywhere without communication.
///
/// Ranks are numbered from the root on, round the end of the job; number v has the children
/// k·v + 1 … k·v + k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    ranks: u32,
    root: Rank,
    arity: u32,
}

impl Topology {
    /// The tree over `ranks` ranks with the client's rank on top.
    ///
    /// # Panics
    /// Unless `root` is a rank of the job and `arity` is at least 1.
    pub fn new(ranks: u32, root: Rank, arity: u32) -> Self {
        assert!(root.0 < ranks && arity > 0, "the root is a rank, and nodes have children");
        Self { ranks, root, arity }
    }

    /// The rank on top.
    pub fn root(&self) -> Rank {
        self.root
    }

    fn number(&self, rank: Rank) -> u64 {
        let (ranks, root) = (u64::from(self.ranks), u64::from(self.root.0));
        (u64::from(rank.0) + ranks - root) % ranks
    }

    fn rank(&self, number: u64) -> Rank {
        Rank(((number + u64::from(self.root.0)) % u64::from(self.ranks)) as u32)
    }

    /// The parent of `rank`; none for the root.
    pub fn parent(&self, rank: Rank) -> Option<Rank> {
        let above = self.number(rank).checked_sub(1)?;
        Some(self.rank(above / u64::from(self.arity)))
    }

    /// The children of `rank`, in the order in which their sums are added.
    pub fn children(&self, rank: Rank) -> impl Iterator<Item = Rank> + use<> {
        let tree = *self;
        let first = tree.number(rank) * u64::from(tree.arity) + 1;
        let past = (first + u64::from(tree.arity)).min(u64::from(tree.ranks));
        (first..past).map(move |number| tree.rank(number))
    }

    /// Number of ranks in the subtree of `rank`, itself included.
    pub fn subtree(&self, rank: Rank) -> u32 {
        self.levels(rank).map(|width| width as u32).sum()
    }

    /// Numbers of ranks that `rank` and each of its children stand for, in this order.
    fn contributors(&self, rank: Rank) -> Vec<u32> {
        let below = self.children(rank).map(|child| self.subtree(child));
        std::iter::once(1).chain(below).collect()
    }

    /// Number of levels below `rank`; 0 for a leaf.
    pub fn height(&self, rank: Rank) -> u32 {
        self.levels(rank).count() as u32 - 1
    }

    /// Ranks per level of the subtree of `rank`, from itself down.
    fn levels(&self, rank: Rank) -> impl Iterator<Item = u64> {
        let (arity, ranks) = (u64::from(self.arity), u64::from(self.ranks));
        let top = self.number(rank);
        std::iter::successors(Some((top, top)), move |&(low, high)| {
            Some((low * arity + 1, high * arity + arity))
        })
        .take_while(move |&(low, _)| low < ranks)
        .map(move |(low, high)| high.min(ranks - 1) - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_hangs_below_the_root_once() {
        for (ranks, root, arity) in
            [(1, 0, 8), (2, 1, 8), (9, 0, 8), (10, 3, 8), (64, 0, 8), (200, 77, 3), (40, 5, 1)]
        {
            let tree = Topology::new(ranks, Rank(root), arity);
            let mut parents = 0;
            for rank in (0..ranks).map(Rank) {
                let children: Vec<Rank> = tree.children(rank).collect();
                assert!(children.len() <= arity as usize);
                assert!(children.iter().all(|&child| tree.parent(child) == Some(rank)));
                let below: u32 = children.iter().map(|&child| tree.subtree(child)).sum();
                assert_eq!(tree.subtree(rank), 1 + below);
                let height = children.iter().map(|&child| tree.height(child) + 1).max();
                assert_eq!(tree.height(rank), height.unwrap_or(0));
                parents += u32::from(tree.parent(rank).is_some());
            }
            assert_eq!((parents, tree.subtree(Rank(root))), (ranks - 1, ranks));
        }
        let million = Topology::new(1_000_000, Rank(0), ARITY);
        assert_eq!((million.subtree(Rank(0)), million.height(Rank(0))), (1_000_000, 7));
        let most = Topology::new(u32::MAX, Rank(u32::MAX - 1), ARITY);
        assert_eq!(most.subtree(Rank(u32::MAX - 1)), u32::MAX);
    }
}
