//! Coordinates of ranks, and steps between them.

use rustc_hash::FxHashMap;

use crate::topology::{Axis, Found, Parent, Pattern, Shape};

/// Names of the axes.
const AXES: [&str; 8] = ["x", "y", "z", "u", "v", "w", "s", "t"];

/// Coordinates of the ranks in the pattern of most traffic.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The shape; `None` where no pattern was found.
    pub shape: Option<Shape>,
    /// Number of its copies.
    pub copies: usize,
    axes: Vec<Axis>,
    places: FxHashMap<u32, (u32, Vec<u32>)>,
    ranks: FxHashMap<(u32, Vec<u32>), u32>,
    trees: Vec<Tree>,
}

/// A tree among the patterns: parent and children of its ranks, these by number.
#[derive(Clone, Debug, Default)]
struct Tree {
    parents: FxHashMap<u32, u32>,
    children: FxHashMap<u32, Vec<u32>>,
}

impl Tree {
    /// The tree that a pattern is; `None` of another.
    fn of(pattern: &Pattern) -> Option<Self> {
        let parent_of = |position: u32| -> Option<u32> {
            match pattern.shape {
                Shape::Tree { arity, .. } => position.checked_sub(1).map(|before| before / arity.max(1)),
                Shape::BinomialTree { parent: Parent::WithoutLowestBit, .. } => {
                    (position > 0).then(|| position & (position - 1))
                }
                Shape::BinomialTree { parent: Parent::WithoutHighestBit, .. } => {
                    position.checked_ilog2().map(|highest| position ^ 1 << highest)
                }
                _ => None,
            }
        };
        if !matches!(pattern.shape, Shape::Tree { .. } | Shape::BinomialTree { .. }) {
            return None;
        }
        let mut tree = Self::default();
        for copy in &pattern.copies {
            let at: FxHashMap<u32, u32> =
                copy.positions.iter().copied().zip(copy.ranks.iter().copied()).collect();
            for (&rank, &position) in copy.ranks.iter().zip(&copy.positions) {
                if let Some(&parent) = parent_of(position).and_then(|parent| at.get(&parent)) {
                    tree.parents.insert(rank, parent);
                    // Ranks ascend.
                    tree.children.entry(parent).or_default().push(rank);
                }
            }
        }
        Some(tree)
    }
}

/// A partner as the topology names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Partner {
    /// The rank at that distance along the axes; `MPI_PROC_NULL` where there is none.
    Shift(Vec<i64>),
    /// The rank whose coordinates differ in these bits.
    Flip(Vec<u32>),
    /// The rank at (y, x).
    Transposed,
    /// The parent in the tree of that number; `MPI_PROC_NULL` of the root.
    Parent(usize),
    /// The child of that number in the tree; `MPI_PROC_NULL` where there is none.
    Child(usize, usize),
    /// A constant of MPI: no rank, or any.
    Special(i64),
    /// One rank of the world.
    Rank(u32),
    /// The rank of the world whose number differs in these bits.
    Xor(u32),
    /// The rank of the world that many further, counted round.
    Offset(u32),
    /// A rank for each rank, or a constant of MPI: no rule was found.
    Table,
}

impl Space {
    /// The coordinates of the pattern of most traffic.
    pub fn of(found: &[Found]) -> Self {
        let trees: Vec<Tree> =
            found.iter().flat_map(|found| &found.topology.patterns).filter_map(Tree::of).collect();
        let usable = |found: &&Found| {
            let mut patterns = found.topology.patterns.iter();
            patterns.next().is_some_and(|pattern| !matches!(pattern.shape, Shape::CompleteBipartite(..)))
        };
        let Some(pattern) = found.iter().find(usable).and_then(|found| found.topology.patterns.first())
        else {
            return Self { trees, ..Self::default() };
        };
        let axes = pattern.shape.axes();
        let mut space = Self {
            shape: Some(pattern.shape.clone()),
            copies: pattern.copies.len(),
            axes,
            trees,
            ..Self::default()
        };
        for (number, copy) in (0..).zip(&pattern.copies) {
            for (&rank, &position) in copy.ranks.iter().zip(&copy.positions) {
                let place = pattern.shape.coordinates(position);
                if place.len() == space.axes.len() {
                    space.ranks.insert((number, place.clone()), rank);
                    space.places.insert(rank, (number, place));
                }
            }
        }
        space
    }

    /// Coordinates of `rank`.
    pub fn place(&self, rank: u32) -> Option<&[u32]> {
        self.places.get(&rank).map(|(_, place)| &place[..])
    }

    /// Axes of the pattern.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Steps to neighbours in the pattern: one along an axis, and those of stencils.
    pub fn steps(&self) -> Vec<Vec<i64>> {
        let axes = self.axes.len();
        let unit = |axis: usize, by: i64| (0..axes).map(|other| if other == axis { by } else { 0 }).collect();
        let mut steps: Vec<Vec<i64>> = (0..axes).flat_map(|axis| [unit(axis, 1), unit(axis, -1)]).collect();
        match self.shape {
            Some(Shape::Skewed(_)) => steps.extend([vec![1, -1], vec![-1, 1]]),
            Some(Shape::Moore(_)) => {
                let mut all = vec![Vec::new()];
                for _ in 0..axes {
                    all = all
                        .iter()
                        .flat_map(|step: &Vec<i64>| [-1, 0, 1].map(|by| [&step[..], &[by]].concat()))
                        .collect();
                }
                let more = |step: &Vec<i64>| step.iter().filter(|&&by| by != 0).count() > 1;
                steps.extend(all.into_iter().filter(more));
            }
            _ => {}
        }
        steps
    }

    /// The rank at `step` from `rank`.
    pub fn at(&self, rank: u32, step: &[i64]) -> Option<u32> {
        let (copy, place) = self.places.get(&rank)?;
        let moved = place.iter().zip(&self.axes).zip(step).map(|((&own, axis), &by)| {
            let to = i64::from(own) + by;
            let size = i64::from(axis.size);
            let to = if axis.periodic { to.rem_euclid(size) } else { to };
            (0..size).contains(&to).then_some(to as u32)
        });
        let place: Option<Vec<u32>> = moved.collect();
        self.ranks.get(&(*copy, place?)).copied()
    }

    /// Step from a rank to another of its copy: along an axis that closes the short way.
    fn step(&self, from: u32, to: u32) -> Option<Vec<i64>> {
        let ((copy, place), (other, end)) = (self.places.get(&from)?, self.places.get(&to)?);
        let along = |((&own, &to), axis): ((&u32, &u32), &Axis)| {
            let (by, size) = (i64::from(to) - i64::from(own), i64::from(axis.size));
            if !axis.periodic {
                return by;
            }
            let forward = by.rem_euclid(size);
            if 2 * forward > size { forward - size } else { forward }
        };
        (copy == other).then(|| place.iter().zip(end).zip(&self.axes).map(along).collect())
    }

    /// Bits in which the coordinates of two ranks of a copy differ.
    fn flip(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let ((copy, place), (other, end)) = (self.places.get(&from)?, self.places.get(&to)?);
        (copy == other).then(|| place.iter().zip(end).map(|(own, to)| own ^ to).collect())
    }

    fn transposed(&self, rank: u32) -> Option<u32> {
        let (copy, place) = self.places.get(&rank)?;
        let [x, y, rest @ ..] = &place[..] else { return None };
        let place = [&[*y, *x], rest].concat();
        self.ranks.get(&(*copy, place)).copied()
    }

    /// The partner of `rank` by a rule, in a job of so many ranks; `None` of a table.
    pub fn partner(&self, rule: &Partner, rank: u32, ranks: u32) -> Option<i64> {
        use ampl_core::value::PROC_NULL;
        match rule {
            Partner::Shift(step) => Some(self.at(rank, step).map_or(PROC_NULL, i64::from)),
            Partner::Flip(bits) => {
                let (copy, place) = self.places.get(&rank)?;
                let place = place.iter().zip(bits).map(|(own, bits)| own ^ bits).collect();
                self.ranks.get(&(*copy, place)).map(|&rank| i64::from(rank))
            }
            Partner::Transposed => self.transposed(rank).map(i64::from),
            Partner::Parent(tree) => {
                let parent = self.trees.get(*tree)?.parents.get(&rank);
                Some(parent.map_or(PROC_NULL, |&parent| i64::from(parent)))
            }
            Partner::Child(tree, number) => {
                let children = self.trees.get(*tree)?.children.get(&rank);
                let child = children.and_then(|children| children.get(*number));
                Some(child.map_or(PROC_NULL, |&child| i64::from(child)))
            }
            Partner::Special(value) => Some(*value),
            Partner::Rank(rank) => Some(i64::from(*rank)),
            Partner::Xor(bits) => Some(i64::from(rank ^ bits)),
            Partner::Offset(by) => Some((i64::from(rank) + i64::from(*by)) % i64::from(ranks.max(1))),
            Partner::Table => None,
        }
    }

    /// Rules that give these partners to these ranks, the plainest first; a table is always the last.
    pub fn rules(&self, partners: &[(u32, i64)], ranks: u32) -> Vec<Partner> {
        let Some(&(_, partner)) = partners.first() else { return vec![Partner::Table] };
        let mut rules: Vec<Partner> = Vec::new();
        // What a rank has as a partner that exists says most.
        let real = partners.iter().find_map(|&(rank, to)| Some((rank, u32::try_from(to).ok()?)));
        match real {
            None => {
                rules.push(Partner::Special(partner));
                rules.extend(self.steps().into_iter().map(Partner::Shift));
            }
            Some((from, to)) => {
                let steps = self.steps();
                let step = self.step(from, to);
                let near = step.clone().filter(|step| steps.contains(step));
                rules.extend(near.map(Partner::Shift));
                rules.extend(
                    self.flip(from, to)
                        .filter(|bits| bits.iter().map(|bits| bits.count_ones()).sum::<u32>() == 1)
                        .map(Partner::Flip),
                );
                if matches!(self.shape, Some(Shape::Cg { .. })) {
                    rules.push(Partner::Transposed);
                }
                for (number, tree) in self.trees.iter().enumerate() {
                    rules.push(Partner::Parent(number));
                    let own =
                        tree.children.get(&from).and_then(|own| own.iter().position(|&child| child == to));
                    rules.extend(own.map(|child| Partner::Child(number, child)));
                }
                let by = i64::from(to) - i64::from(from);
                rules.push(Partner::Rank(to));
                rules.push(Partner::Offset(by.rem_euclid(i64::from(ranks.max(1))) as u32));
                rules.push(Partner::Xor(from ^ to));
                rules.extend(step.map(Partner::Shift));
                rules.extend(self.flip(from, to).map(Partner::Flip));
                rules.push(Partner::Transposed);
            }
        }
        let holds = |rule: &Partner| {
            partners.iter().all(|&(rank, partner)| self.partner(rule, rank, ranks) == Some(partner))
        };
        let mut seen = rustc_hash::FxHashSet::default();
        rules.retain(|rule| seen.insert(rule.clone()) && holds(rule));
        rules.push(Partner::Table);
        rules
    }

    /// True where ranks have a root rather than directions.
    fn is_rooted(&self) -> bool {
        use Shape::{BinomialTree, Complete, Star, Tree};
        matches!(self.shape, None | Some(Star(_) | Tree { .. } | BinomialTree { .. } | Complete(_)))
    }

    /// True where a rule is an edge of the pattern.
    pub fn is_inside(&self, rule: &Partner) -> bool {
        match rule {
            Partner::Shift(step) => !self.is_rooted() && self.steps().contains(step),
            Partner::Flip(bits) => bits.iter().filter(|&&bits| bits != 0).count() == 1,
            Partner::Transposed => matches!(self.shape, Some(Shape::Cg { .. })),
            Partner::Parent(_) | Partner::Child(..) => true,
            Partner::Rank(_) => self.is_rooted(),
            _ => false,
        }
    }

    /// Name of a rule: `+x`, `(+x, -y)`, `rank 0`.
    pub fn name(&self, rule: &Partner) -> String {
        use ampl_core::value::rank_value;
        let axis = |at: usize| AXES.get(at).map_or_else(|| format!("axis {at}"), |name| (*name).to_owned());
        let signed = |at: usize, by: i64| {
            let times = if by.abs() == 1 { String::new() } else { by.abs().to_string() };
            format!("{}{times}{}", if by < 0 { '-' } else { '+' }, axis(at))
        };
        match rule {
            Partner::Shift(step) => {
                let moved = step.iter().enumerate().filter(|(_, by)| **by != 0);
                let parts: Vec<String> = moved.map(|(at, &by)| signed(at, by)).collect();
                match &parts[..] {
                    [] => "itself".into(),
                    [one] => one.clone(),
                    _ => format!("({})", parts.join(", ")),
                }
            }
            Partner::Flip(bits) => {
                let parts = bits.iter().enumerate().filter(|(_, bits)| **bits != 0).map(|(at, &bits)| {
                    match self.axes.get(at) {
                        Some(Axis { size: 2, .. }) => format!("other {}", axis(at)),
                        _ => format!("{} xor {bits}", axis(at)),
                    }
                });
                parts.collect::<Vec<_>>().join(", ")
            }
            Partner::Transposed => "(y, x)".into(),
            Partner::Parent(_) => "parent".into(),
            Partner::Child(_, number) => format!("child {number}"),
            Partner::Special(value) => rank_value(*value).to_string(),
            Partner::Rank(rank) => format!("rank {rank}"),
            Partner::Xor(bits) => format!("rank xor {bits}"),
            Partner::Offset(by) => format!("rank + {by}"),
            Partner::Table => "by table".into(),
        }
    }
}
