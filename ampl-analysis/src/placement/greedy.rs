//! Nodes that are filled one after the other with the ranks that have most to do with those on them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::swaps::Traffic;

/// A rank that may be next: what it has to do with the node, and with ranks that have no node.
#[derive(PartialEq)]
struct Next {
    inside: f64,
    outside: f64,
    rank: u32,
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        let inside = self.inside.total_cmp(&other.inside);
        inside.then(other.outside.total_cmp(&self.outside)).then(other.rank.cmp(&self.rank))
    }
}

/// Node of each rank; every node has its size.
pub fn grown(traffic: &Traffic, sizes: &[u32]) -> Vec<u32> {
    let ranks = traffic.ranks() as usize;
    let mut nodes = vec![u32::MAX; ranks];
    // Price to ranks that have no node.
    let mut outside: Vec<f64> = (0..traffic.ranks())
        .map(|rank| traffic.neighbours(rank).iter().map(|(_, price)| price).sum())
        .collect();
    let mut seeds: BinaryHeap<Next> = (0..traffic.ranks())
        .map(|rank| Next { inside: 0.0, outside: outside[rank as usize], rank })
        .collect();
    for (node, &size) in (0..).zip(sizes) {
        let mut inside: rustc_hash::FxHashMap<u32, f64> = rustc_hash::FxHashMap::default();
        let mut heap: BinaryHeap<Next> = BinaryHeap::new();
        for _ in 0..size {
            let fresh =
                |next: &Next, inside: f64, outside: f64| next.inside == inside && next.outside == outside;
            let mut chosen = None;
            while let Some(next) = heap.pop() {
                let own = inside.get(&next.rank).copied().unwrap_or(0.0);
                if nodes[next.rank as usize] == u32::MAX && fresh(&next, own, outside[next.rank as usize]) {
                    chosen = Some(next.rank);
                    break;
                }
            }
            while chosen.is_none() {
                let Some(next) = seeds.pop() else { break };
                let free = nodes[next.rank as usize] == u32::MAX;
                chosen = Some(next.rank).filter(|_| free && fresh(&next, 0.0, outside[next.rank as usize]));
            }
            let Some(rank) = chosen else { break };
            nodes[rank as usize] = node;
            for &(next, price) in traffic.neighbours(rank) {
                outside[next as usize] -= price;
                if nodes[next as usize] != u32::MAX {
                    continue;
                }
                let sum = inside.entry(next).or_default();
                *sum += price;
                let (inside, outside) = (*sum, outside[next as usize]);
                heap.push(Next { inside, outside, rank: next });
                seeds.push(Next { inside: 0.0, outside, rank: next });
            }
        }
    }
    // Sums of floating numbers may leave entries that look stale; such ranks fill what is left.
    let mut left: Vec<u32> = sizes.to_vec();
    nodes.iter().filter(|&&node| node != u32::MAX).for_each(|&node| left[node as usize] -= 1);
    let mut free = 0;
    for node in nodes.iter_mut().filter(|node| **node == u32::MAX) {
        while left[free] == 0 {
            free += 1;
        }
        left[free] -= 1;
        *node = free as u32;
    }
    nodes
}
