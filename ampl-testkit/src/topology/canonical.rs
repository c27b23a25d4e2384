//! Canonical forms by nauty's `labelg`: two graphs are isomorphic if, and only if, theirs are equal.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Edges;

/// Canonical forms of `graphs`; `None`, with a message on stderr, where nauty is not installed.
///
/// # Panics
/// Where nauty fails, or a graph has more than 62 vertices.
pub fn forms(graphs: &[Edges]) -> Option<Vec<String>> {
    let mut child = ["nauty-labelg", "labelg"].iter().find_map(|name| {
        let mut command = Command::new(name);
        command.arg("-q").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().ok()
    });
    let Some(mut child) = child.take() else {
        eprintln!(
            "SKIPPED: nauty is not installed (apt-get install nauty); nothing was compared with canonical forms"
        );
        return None;
    };
    let lines: String = graphs.iter().map(|graph| graph6(graph) + "\n").collect();
    let mut input = child.stdin.take().expect("standard input is a pipe");
    // Apart: nauty answers while it is still being asked.
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("nauty runs");
    writer.join().expect("the writer does not panic").expect("nauty reads all graphs");
    assert!(output.status.success(), "nauty: {}", output.status);
    let forms: Vec<String> =
        String::from_utf8(output.stdout).expect("graph6 is text").lines().map(str::to_owned).collect();
    assert_eq!(forms.len(), graphs.len());
    Some(forms)
}

/// Every connected graph of so many vertices once, by nauty's `geng`; `None`, with a message on stderr, where nauty is
/// not installed.
///
/// # Panics
/// Where nauty fails.
pub fn all_connected(vertices: u32) -> Option<Vec<Edges>> {
    let output = ["nauty-geng", "geng"]
        .iter()
        .find_map(|name| Command::new(name).args(["-c", "-q", &vertices.to_string()]).output().ok());
    let Some(output) = output else {
        eprintln!("{MISSING}");
        return None;
    };
    assert!(output.status.success(), "nauty: {}", output.status);
    Some(String::from_utf8(output.stdout).expect("graph6 is text").lines().map(from_graph6).collect())
}

const MISSING: &str =
    "SKIPPED: nauty is not installed (apt-get install nauty); nothing was compared with canonical forms";

/// The graph that a short graph6 line stands for.
fn from_graph6(line: &str) -> Edges {
    let values: Vec<u32> = line.bytes().map(|byte| u32::from(byte) - 63).collect();
    let bit = |at: u32| values[1 + at as usize / 6] >> (5 - at % 6) & 1 == 1;
    let pairs = (0..values[0]).flat_map(|high| (0..high).map(move |low| (low, high)));
    let edges = pairs.enumerate().filter(|&(at, _)| bit(at as u32)).map(|(_, pair)| pair).collect();
    (values[0], edges)
}

/// A graph as nauty reads it.
fn graph6((vertices, edges): &Edges) -> String {
    assert!(*vertices <= 62, "a short graph6 line has at most 62 vertices");
    let mut bits = vec![false; (vertices * vertices.saturating_sub(1) / 2).next_multiple_of(6) as usize];
    for &(u, v) in edges.iter().filter(|(u, v)| u != v) {
        let (low, high) = (u.min(v), u.max(v));
        bits[(high * (high - 1) / 2 + low) as usize] = true;
    }
    let sextets = bits.chunks(6).map(|six| six.iter().fold(0_u8, |value, &bit| value << 1 | u8::from(bit)));
    std::iter::once(*vertices as u8).chain(sextets).map(|value| char::from(value + 63)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_written_as_graph6() {
        // The example of nauty's formats.txt.
        let graph = (5, vec![(0, 2), (1, 3), (0, 4), (3, 4)]);
        assert_eq!(graph6(&graph), "DQc");
        assert_eq!(from_graph6("DQc"), graph);
    }
}
