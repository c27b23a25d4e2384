//! Communication topologies by their definitions: generators, disturbances, and a checker of claimed coordinates.
//!
//! Nothing here is shared with the code that is tested: graphs are lists of edges, checks compare all pairs.

pub mod canonical;
mod check;
mod disturb;

pub use check::{Claim, check};
pub use disturb::{copies, random_regular, shuffled, switched, twisted_torus, with_edge, without_edge};

/// Number of vertices, and edges between them.
pub type Edges = (u32, Vec<(u32, u32)>);

/// A topology with its sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// Lines and rings multiplied: sizes, and which axes close.
    Lattice(Vec<u32>, Vec<bool>),
    /// Lattice of two axes with one diagonal, as NPB's BT and SP exchange.
    SixPoints([u32; 2], [bool; 2]),
    /// All neighbours that differ by at most 1 along every axis.
    Moore(Vec<u32>, Vec<bool>),
    /// Numbers of that many bits.
    Hypercube(u32),
    /// All with all.
    Complete(u32),
    /// One with all others.
    Star(u32),
    /// All of the first with all of the second.
    Bipartite(u32, u32),
    /// Complete graphs multiplied.
    Hamming(Vec<u32>),
    /// Number of vertices, numbered level by level, and of children of each.
    Tree(u32, u32),
    /// Broadcast by distances that are halved: every holder sends it `distance` further.
    Halving(u32),
    /// Broadcast by distances that are doubled.
    Doubling(u32),
    /// NPB's CG on that many processes, a power of two.
    Cg(u32),
    /// Levels of 2^bits rows.
    Butterfly(u32),
}

impl Family {
    /// Graph of the topology, numbered as the definition has it.
    ///
    /// # Panics
    /// For CG on a number of processes that is no power of two.
    pub fn edges(&self) -> Edges {
        match self {
            Self::Lattice(sizes, periodic) => {
                stencil(sizes, periodic, |step| step.iter().filter(|&&by| by != 0).count() == 1)
            }
            Self::Moore(sizes, periodic) => stencil(sizes, periodic, |_| true),
            Self::SixPoints(sizes, periodic) => stencil(sizes, periodic, |step| step[0] != step[1]),
            Self::Hypercube(bits) => {
                let all =
                    (0..1_u32 << bits).flat_map(|from| (0..*bits).map(move |bit| (from, from ^ (1 << bit))));
                (1 << bits, all.filter(|(from, to)| from < to).collect())
            }
            Self::Complete(size) => pairs(*size, |_, _| true),
            Self::Star(size) => pairs(*size, |u, _| u == 0),
            Self::Bipartite(a, b) => pairs(a + b, |u, v| (u < *a) != (v < *a)),
            Self::Hamming(sizes) => {
                let count = sizes.iter().product();
                pairs(count, |u, v| {
                    let (u, v) = (coordinates(u, sizes), coordinates(v, sizes));
                    u.iter().zip(&v).filter(|(u, v)| u != v).count() == 1
                })
            }
            Self::Tree(size, arity) => {
                (*size, (1..*size).map(|child| ((child - 1) / arity, child)).collect())
            }
            Self::Halving(size) => {
                let mut edges = Vec::new();
                let mut distance = size.next_power_of_two();
                while distance > 1 {
                    let half = distance / 2;
                    edges.extend((0..*size).step_by(distance as usize).map(|from| (from, from + half)));
                    distance = half;
                }
                edges.retain(|(_, to)| to < size);
                (*size, edges)
            }
            Self::Doubling(size) => {
                let mut edges = Vec::new();
                let mut distance = 1;
                while distance < *size {
                    edges.extend((0..distance).map(|from| (from, from + distance)));
                    distance *= 2;
                }
                edges.retain(|(_, to)| to < size);
                (*size, edges)
            }
            Self::Cg(processes) => (*processes, cg(*processes)),
            Self::Butterfly(bits) => {
                let rows = 1 << bits;
                let level = |level: u32| {
                    (0..rows).flat_map(move |row| {
                        let from = level * rows + row;
                        let to = (level + 1) * rows;
                        [(from, to + row), (from, to + (row ^ (1 << level)))]
                    })
                };
                ((bits + 1) * rows, (0..*bits).flat_map(level).collect())
            }
        }
    }
}

/// Graph of the pairs `u < v` that `joined` accepts.
fn pairs(size: u32, joined: impl Fn(u32, u32) -> bool) -> Edges {
    let all = (0..size).flat_map(|u| (u + 1..size).map(move |v| (u, v)));
    (size, all.filter(|&(u, v)| joined(u, v)).collect())
}

/// Coordinates of `number`, the last axis fastest.
pub(crate) fn coordinates(mut number: u32, sizes: &[u32]) -> Vec<u32> {
    let mut reversed: Vec<u32> = sizes
        .iter()
        .rev()
        .map(|size| {
            let own = number % size;
            number /= size;
            own
        })
        .collect();
    reversed.reverse();
    reversed
}

/// Graph of a box in which every place is joined with those a step away that `step` accepts.
fn stencil(sizes: &[u32], periodic: &[bool], accepted: impl Fn(&[i64]) -> bool) -> Edges {
    let count: u32 = sizes.iter().product();
    let mut steps: Vec<Vec<i64>> = vec![Vec::new()];
    for _ in sizes {
        steps = steps.iter().flat_map(|step| [-1, 0, 1].map(|by| [&step[..], &[by]].concat())).collect();
    }
    steps.retain(|step| step.iter().any(|&by| by != 0) && accepted(step));
    let mut edges = Vec::new();
    for from in 0..count {
        for step in &steps {
            let mut to = 0_i64;
            let mut inside = true;
            for (axis, own) in coordinates(from, sizes).into_iter().enumerate() {
                let size = i64::from(sizes[axis]);
                let mut next = i64::from(own) + step[axis];
                if periodic[axis] {
                    next = next.rem_euclid(size);
                }
                inside &= (0..size).contains(&next);
                to = to * size + next;
            }
            if inside && i64::from(from) != to {
                edges.push((from.min(to as u32), from.max(to as u32)));
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    (count, edges)
}

/// Partners as `setup_proc_info` and `setup_submatrix_info` of NPB's `cg.f` compute them.
fn cg(processes: u32) -> Vec<(u32, u32)> {
    assert!(processes.is_power_of_two(), "CG runs on powers of two");
    let rows = 1 << (processes.ilog2() / 2);
    let columns = processes / rows;
    let mut edges = Vec::new();
    for me in 0..processes {
        let (row, column) = (me / columns, me % columns);
        let mut divisor = columns;
        while divisor > 1 {
            let partner = (column + divisor / 2) % divisor + column / divisor * divisor;
            edges.push((me, row * columns + partner));
            divisor /= 2;
        }
        let transposed = if columns == rows {
            (me % rows) * rows + me / rows
        } else {
            2 * (((me / 2) % rows) * rows + me / 2 / rows) + me % 2
        };
        edges.push((me, transposed));
    }
    edges.retain(|(u, v)| u < v);
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_their_edges() {
        let count = |family: Family| family.edges().1.len();
        assert_eq!(count(Family::Lattice(vec![4, 3], vec![false, true])), 3 * 3 + 4 * 3);
        assert_eq!(count(Family::SixPoints([5, 4], [true, true])), 60);
        assert_eq!(count(Family::SixPoints([4, 3], [false, false])), 9 + 8 + 6);
        assert_eq!(count(Family::Moore(vec![5, 5, 5], vec![true; 3])), 13 * 125);
        assert_eq!(count(Family::Cg(8)), 10);
        assert_eq!(count(Family::Cg(16)), 22);
        assert_eq!(count(Family::Halving(13)), 12);
        assert_eq!(count(Family::Doubling(13)), 12);
        assert_eq!(count(Family::Butterfly(3)), 48);
        assert_eq!(count(Family::Hamming(vec![4, 3])), 30);
    }
}
