//! Programs laid over each other: calls and loops that both have become one, in an order that both keep.

use std::collections::BTreeSet;

use super::tree::Node;

/// Most pairs of parts that are compared to lay two bodies over each other.
const MOST_PAIRS: usize = 4_000_000;

/// Both bodies in one. The classes of `fresh` are none of those of `known`, and higher.
pub fn merged(known: Vec<Node>, fresh: Vec<Node>) -> Vec<Node> {
    if known.is_empty() {
        return fresh;
    }
    if fresh.is_empty() {
        return known;
    }
    let pairs = aligned(&known, &fresh);
    let (mut known, mut fresh) = (known.into_iter(), fresh.into_iter());
    let (mut at, mut other) = (0, 0);
    let mut nodes = Vec::new();
    for (left, right) in pairs {
        nodes.extend(known.by_ref().take(left - at));
        nodes.extend(fresh.by_ref().take(right - other));
        if let (Some(one), Some(two)) = (known.next(), fresh.next()) {
            nodes.push(joined(one, two));
        }
        (at, other) = (left + 1, right + 1);
    }
    nodes.extend(known);
    nodes.extend(fresh);
    nodes
}

fn joined(one: Node, two: Node) -> Node {
    match (one, two) {
        (Node::Call { label, mut uses }, Node::Call { uses: more, .. }) => {
            uses.extend(more);
            Node::Call { label, uses }
        }
        (Node::Loop { body, mut uses }, Node::Loop { body: other, uses: more }) => {
            uses.extend(more);
            Node::Loop { body: merged(body, other), uses }
        }
        // Never aligned.
        (one, _) => one,
    }
}

/// Labels in a part.
fn labels(node: &Node, found: &mut BTreeSet<u32>) {
    match node {
        Node::Call { label, .. } => _ = found.insert(*label),
        Node::Loop { body, .. } => body.iter().for_each(|node| labels(node, found)),
    }
}

/// How well two parts fit: 0 where they may not become one.
fn fit(one: &(bool, BTreeSet<u32>), other: &(bool, BTreeSet<u32>)) -> u32 {
    if one.0 != other.0 {
        return 0;
    }
    if !one.0 {
        return if one.1 == other.1 { 2 } else { 0 };
    }
    let shared = one.1.intersection(&other.1).count();
    let least = one.1.len().min(other.1.len()).max(1);
    if 2 * shared >= least { 2 + shared as u32 } else { 0 }
}

/// Places in both bodies that become one, ascending: those that fit best together.
fn aligned(known: &[Node], fresh: &[Node]) -> Vec<(usize, usize)> {
    let of = |nodes: &[Node]| -> Vec<(bool, BTreeSet<u32>)> {
        let one = |node: &Node| {
            let mut found = BTreeSet::new();
            labels(node, &mut found);
            (matches!(node, Node::Loop { .. }), found)
        };
        nodes.iter().map(one).collect()
    };
    let (left, right) = (of(known), of(fresh));
    let head = left.iter().zip(&right).take_while(|(one, other)| one == other).count();
    let rest = left[head..].iter().rev().zip(right[head..].iter().rev());
    let tail = rest.take_while(|(one, other)| one == other).count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    let (rows, columns) = (left.len() - head - tail, right.len() - head - tail);
    if rows > 0 && columns > 0 && rows.saturating_mul(columns) <= MOST_PAIRS {
        // best[row][column]: of what is behind both.
        let width = columns + 1;
        let mut best = vec![0_u32; (rows + 1) * width];
        for row in (0..rows).rev() {
            for column in (0..columns).rev() {
                let skip = best[(row + 1) * width + column].max(best[row * width + column + 1]);
                let fits = fit(&left[head + row], &right[head + column]);
                let take = if fits > 0 { fits + best[(row + 1) * width + column + 1] } else { 0 };
                best[row * width + column] = skip.max(take);
            }
        }
        let (mut row, mut column) = (0, 0);
        while row < rows && column < columns {
            let here = best[row * width + column];
            let fits = fit(&left[head + row], &right[head + column]);
            if fits > 0 && here == fits + best[(row + 1) * width + column + 1] {
                pairs.push((head + row, head + column));
                (row, column) = (row + 1, column + 1);
            } else if here == best[(row + 1) * width + column] {
                row += 1;
            } else {
                column += 1;
            }
        }
    }
    pairs.extend((0..tail).map(|at| (left.len() - tail + at, right.len() - tail + at)));
    pairs
}
