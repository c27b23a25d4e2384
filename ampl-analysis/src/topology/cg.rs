//! The exchange pattern of conjugate gradients on a square of processes: hypercubes along the rows, and a transposition.

use super::Match;
use super::graph::{Graph, Sets};
use super::shape::Shape;

/// The pattern that the connected `graph` is; a guess that the caller proves.
///
/// Edges on squares are those of the rows. What else a vertex of row r has leads to the row whose number is its column.
pub(super) fn cg(graph: &Graph) -> Option<Match> {
    let vertices = graph.vertices();
    let bits = vertices.checked_ilog2()? / 2;
    let rows = 1_u32 << bits;
    let degrees = u64::from(vertices) * u64::from(bits) + u64::from(vertices) - u64::from(rows);
    if bits < 2 || vertices != rows * rows || 2 * graph.edges() != degrees {
        return None;
    }
    let (rows_of, transposed) = rows_and_mates(graph)?;
    let first: Vec<u32> = (0..vertices).filter(|&vertex| rows_of[vertex as usize] == rows_of[0]).collect();
    let diagonal = *first.iter().find(|&&vertex| transposed[vertex as usize] == u32::MAX)?;
    let columns = cube(graph, &rows_of, diagonal, bits)?;
    let mut numbers = vec![u32::MAX; vertices as usize];
    numbers[rows_of[0] as usize] = 0;
    for &vertex in first.iter().filter(|&&vertex| vertex != diagonal) {
        let mate = *transposed.get(vertex as usize).filter(|&&mate| mate != u32::MAX)?;
        numbers[rows_of[mate as usize] as usize] = columns[vertex as usize];
    }
    let positions = (0..vertices).map(|vertex| {
        let row = numbers[rows_of[vertex as usize] as usize];
        let mate = transposed[vertex as usize];
        let column = if mate == u32::MAX { row } else { numbers[rows_of[mate as usize] as usize] };
        (row < rows && column < rows).then_some(row << bits | column)
    });
    Some(Match { shape: Shape::Cg { bits, doubled: false }, positions: positions.collect::<Option<_>>()? })
}

/// For each vertex the least one of its row, and the end of its edge that lies on no square.
fn rows_and_mates(graph: &Graph) -> Option<(Vec<u32>, Vec<u32>)> {
    let vertices = graph.vertices();
    let mut rows = Sets::new(vertices as usize);
    let mut mates = vec![u32::MAX; vertices as usize];
    let mut seen = vec![(u32::MAX, 0_u32); vertices as usize];
    let mut on_square = Vec::new();
    for vertex in 0..vertices {
        let row = graph.neighbours(vertex);
        on_square.clear();
        on_square.resize(row.len(), false);
        for (place, &next) in row.iter().enumerate() {
            for &end in graph.neighbours(next).iter().filter(|&&end| end != vertex) {
                let (from, before) = seen[end as usize];
                if from == vertex {
                    on_square[before as usize] = true;
                    on_square[place] = true;
                } else {
                    seen[end as usize] = (vertex, place as u32);
                }
            }
        }
        for (&next, &on_square) in row.iter().zip(&on_square) {
            if on_square {
                rows.join(vertex, next);
            } else if mates[vertex as usize] == u32::MAX {
                mates[vertex as usize] = next;
            } else {
                return None;
            }
        }
    }
    Some(((0..vertices).map(|vertex| rows.find(vertex)).collect(), mates))
}

/// Numbers of the vertices of `start`'s row, of so many bits: that of `start` is 0, neighbours differ in one bit.
fn cube(graph: &Graph, rows: &[u32], start: u32, bits: u32) -> Option<Vec<u32>> {
    let mut numbers = vec![u32::MAX; rows.len()];
    let mut distances = vec![u32::MAX; rows.len()];
    numbers[start as usize] = 0;
    distances[start as usize] = 0;
    let mut order = vec![start];
    let mut at = 0;
    let mut free = 0;
    while let Some(&vertex) = order.get(at) {
        at += 1;
        let distance = distances[vertex as usize];
        let in_row = |next: &&u32| rows[**next as usize] == rows[start as usize];
        for &next in graph.neighbours(vertex).iter().filter(in_row) {
            if distances[next as usize] == u32::MAX {
                distances[next as usize] = distance + 1;
                numbers[next as usize] = 0;
                order.push(next);
                if vertex == start {
                    numbers[next as usize] = 1_u32.checked_shl(free).filter(|_| free < bits)?;
                    free += 1;
                }
            }
            if distances[next as usize] == distance + 1 {
                numbers[next as usize] |= numbers[vertex as usize];
            }
        }
    }
    Some(numbers)
}
