//! Swaps of ranks between nodes.

use crate::topology::WeightedEdge;

/// Least gain of a swap, as a share of the whole price.
const LEAST: f64 = 1e-9;

/// Most steps of the improvement of a placement; a step looks at one neighbour of a rank.
const MOST_STEPS: u64 = 400_000_000;

/// Most rounds over all ranks or pairs of nodes.
const MOST_ROUNDS: u32 = 30;

/// Prices between ranks: neighbours of each rank.
#[derive(Clone, Debug)]
pub struct Traffic {
    neighbours: Vec<Vec<(u32, f64)>>,
    whole: f64,
}

impl Traffic {
    /// Prices of `edges` between so many ranks.
    pub fn of(edges: &[WeightedEdge], ranks: usize, price: impl Fn(&WeightedEdge) -> f64) -> Self {
        let mut neighbours = vec![Vec::new(); ranks];
        let mut whole = 0.0;
        for edge in edges {
            let price = price(edge);
            whole += price;
            neighbours[edge.0 as usize].push((edge.1, price));
            neighbours[edge.1 as usize].push((edge.0, price));
        }
        Self { neighbours, whole }
    }

    /// Neighbours of `rank`, and the price between them.
    pub fn neighbours(&self, rank: u32) -> &[(u32, f64)] {
        &self.neighbours[rank as usize]
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.neighbours.len() as u32
    }

    /// Price of what crosses between nodes.
    pub fn cost(&self, nodes: &[u32]) -> f64 {
        let mut cost = 0.0;
        for (rank, neighbours) in self.neighbours.iter().enumerate() {
            let crossing = neighbours.iter().filter(|(other, _)| nodes[*other as usize] != nodes[rank]);
            cost += crossing.map(|(_, price)| price).sum::<f64>();
        }
        cost / 2.0
    }

    /// Price between `rank` and the ranks of `node`.
    fn to_node(&self, rank: u32, node: u32, nodes: &[u32]) -> f64 {
        let there = self.neighbours(rank).iter().filter(|(other, _)| nodes[*other as usize] == node);
        there.map(|(_, price)| price).sum()
    }

    /// Price between two ranks.
    fn between(&self, one: u32, other: u32) -> f64 {
        let found = self.neighbours(one).iter().find(|(next, _)| *next == other);
        found.map_or(0.0, |(_, price)| *price)
    }

    /// Swaps ranks of `nodes` as long as that lowers the cost, and work is left.
    pub fn improve(&self, nodes: &mut [u32], count: usize) {
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); count];
        (0..).zip(nodes.iter()).for_each(|(rank, &node)| members[node as usize].push(rank));
        let mut steps = 0;
        for _ in 0..MOST_ROUNDS {
            let before = steps;
            let swapped = self.single(nodes, &mut members, &mut steps);
            let moved = self.pairs(nodes, &mut members, &mut steps);
            if !(swapped || moved) || steps > MOST_STEPS || steps == before {
                break;
            }
        }
    }

    /// Best swap of each rank with one of a node that it has to do with.
    fn single(&self, nodes: &mut [u32], members: &mut [Vec<u32>], steps: &mut u64) -> bool {
        let mut any = false;
        for rank in 0..self.ranks() {
            let own = nodes[rank as usize];
            let mut others: Vec<u32> =
                self.neighbours(rank).iter().map(|(next, _)| nodes[*next as usize]).collect();
            others.sort_unstable();
            others.dedup();
            let inside = self.to_node(rank, own, nodes);
            let mut best: Option<(f64, u32)> = None;
            for node in others.into_iter().filter(|&node| node != own) {
                let gained = self.to_node(rank, node, nodes) - inside;
                for &other in &members[node as usize] {
                    *steps += self.neighbours(other).len() as u64 + 1;
                    let back = self.to_node(other, own, nodes) - self.to_node(other, node, nodes);
                    let gain = gained + back - 2.0 * self.between(other, rank);
                    if gain > LEAST * self.whole && best.is_none_or(|(most, _)| gain > most) {
                        best = Some((gain, other));
                    }
                }
            }
            if let Some((_, other)) = best {
                swap(nodes, members, rank, other);
                any = true;
            }
            if *steps > MOST_STEPS {
                break;
            }
        }
        any
    }

    /// Chains of swaps between each two nodes that have to do with each other, as far as they gain together.
    fn pairs(&self, nodes: &mut [u32], members: &mut [Vec<u32>], steps: &mut u64) -> bool {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for rank in 0..self.ranks() {
            for (next, _) in self.neighbours(rank) {
                let (one, other) = (nodes[rank as usize], nodes[*next as usize]);
                if one < other {
                    pairs.push((one, other));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut any = false;
        for (one, other) in pairs {
            if *steps > MOST_STEPS {
                break;
            }
            any |= self.chain(nodes, members, (one, other), steps);
        }
        any
    }

    fn chain(&self, nodes: &mut [u32], members: &mut [Vec<u32>], pair: (u32, u32), steps: &mut u64) -> bool {
        let (a, b) = (members[pair.0 as usize].clone(), members[pair.1 as usize].clone());
        let mut free = (a.clone(), b.clone());
        let mut swaps: Vec<(u32, u32)> = Vec::new();
        let (mut sum, mut most, mut length) = (0.0, LEAST * self.whole, 0);
        let limit = a.len().min(b.len());
        for _ in 0..limit {
            let gain = |rank: u32, to: u32, from: u32, nodes: &[u32]| {
                self.to_node(rank, to, nodes) - self.to_node(rank, from, nodes)
            };
            let mut gains: Vec<(f64, u32)> =
                free.0.iter().map(|&rank| (gain(rank, pair.1, pair.0, nodes), rank)).collect();
            let mut backs: Vec<(f64, u32)> =
                free.1.iter().map(|&rank| (gain(rank, pair.0, pair.1, nodes), rank)).collect();
            gains.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
            backs.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
            let mut best: Option<(f64, u32, u32)> = None;
            for &(gained, rank) in &gains {
                for &(back, other) in &backs {
                    // Sorted: what is behind gains no more.
                    if best.is_some_and(|(most, ..)| gained + back <= most) {
                        break;
                    }
                    *steps += self.neighbours(rank).len() as u64;
                    let all = gained + back - 2.0 * self.between(rank, other);
                    if best.is_none_or(|(most, ..)| all > most) {
                        best = Some((all, rank, other));
                    }
                }
            }
            *steps += (free.0.len() + free.1.len()) as u64 * 8;
            let Some((gain, rank, other)) = best else { break };
            free.0.retain(|&own| own != rank);
            free.1.retain(|&own| own != other);
            nodes.swap(rank as usize, other as usize);
            swaps.push((rank, other));
            sum += gain;
            if sum > most {
                (most, length) = (sum, swaps.len());
            }
            if *steps > MOST_STEPS {
                break;
            }
        }
        for &(rank, other) in swaps[length..].iter().rev() {
            nodes.swap(rank as usize, other as usize);
        }
        let of =
            |node: u32| a.iter().chain(&b).copied().filter(|&rank| nodes[rank as usize] == node).collect();
        (members[pair.0 as usize], members[pair.1 as usize]) = (of(pair.0), of(pair.1));
        length > 0
    }
}

fn swap(nodes: &mut [u32], members: &mut [Vec<u32>], rank: u32, other: u32) {
    let (one, two) = (nodes[rank as usize], nodes[other as usize]);
    for (node, from, to) in [(one, rank, other), (two, other, rank)] {
        if let Some(place) = members[node as usize].iter_mut().find(|member| **member == from) {
            *place = to;
        }
    }
    nodes.swap(rank as usize, other as usize);
}
