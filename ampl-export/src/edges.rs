//! Files of edges, a line each.

use std::io::BufRead;

use ampl_analysis::topology::Edges;

/// Limit of ranks: every rank up to the highest has a place in memory.
const MOST_RANKS: u32 = 20_000_000;

/// Fault of a file of edges.
#[derive(Debug)]
pub struct Fault {
    /// The fault.
    pub what: String,
    /// Number of its line, from 1.
    pub line: u64,
    /// Remedy.
    pub fix: &'static str,
}

/// Edges of the lines of `input`.
///
/// # Errors
/// A [`Fault`] in the first line that is none of an edge.
pub fn parse(mut input: impl BufRead) -> Result<Edges, Fault> {
    let mut read = Edges::default();
    let mut line = Vec::new();
    let mut number = 0_u64;
    let mut first: Option<(u64, bool)> = None;
    loop {
        line.clear();
        number += 1;
        let failed = |what: String, fix| Fault { what, line: number, fix };
        const FIX: &str = "a line is 'RANK RANK' or 'RANK RANK VOLUME'";
        match input.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Err(failed(format!("cannot read it: {error}"), "name a file of edges")),
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            return Err(failed("this is no text".into(), FIX));
        };
        let text = text.trim_start_matches('\u{feff}').split('#').next().unwrap_or_default();
        let mut words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
        let Some(word) = words.next() else { continue };
        let rank = |word: &str| match word.parse::<u64>() {
            Ok(rank) if rank < u64::from(MOST_RANKS) => Ok(rank as u32),
            Ok(rank) => Err(failed(format!("rank {rank} is too high"), "ranks are below 20000000")),
            Err(_) => Err(failed(format!("'{word}' is no rank"), FIX)),
        };
        let u = rank(word)?;
        let Some(word) = words.next() else {
            return Err(failed("an edge has two ranks".into(), FIX));
        };
        let v = rank(word)?;
        let volume = match words.next() {
            None => None,
            Some(word) => match word.parse::<f64>() {
                Ok(volume) if volume.is_finite() && volume >= 0.0 => Some(volume),
                _ => return Err(failed(format!("'{word}' is no volume"), "a volume is a number from 0")),
            },
        };
        if let Some(word) = words.next() {
            return Err(failed(format!("'{word}' is too much"), FIX));
        }
        let (line, weighted) = *first.get_or_insert((number, volume.is_some()));
        if weighted != volume.is_some() {
            let (own, other) = if weighted { ("no", "one") } else { ("a", "none") };
            return Err(failed(
                format!("there is {own} volume here, and {other} in line {line}"),
                "give all edges a volume, or none",
            ));
        }
        read.weighted = weighted;
        read.vertices = read.vertices.max(u.max(v) + 1);
        if u == v {
            read.loops += 1;
        } else {
            read.edges.push((u.min(v), u.max(v), volume.unwrap_or(1.0)));
        }
    }
    read.edges.sort_unstable_by_key(|&(u, v, _)| (u, v));
    let weighted = read.weighted;
    read.edges.dedup_by(|again, kept| {
        let same = (again.0, again.1) == (kept.0, kept.1);
        if same && weighted {
            kept.2 += again.2;
        }
        same
    });
    match read.edges.iter().find(|(_, _, volume)| !volume.is_finite()) {
        Some((u, v, _)) => Err(Fault {
            what: format!("the volumes between ranks {u} and {v} have no sum"),
            line: number.saturating_sub(1).max(1),
            fix: "give volumes in another unit",
        }),
        None => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Result<Edges, Fault> {
        parse(text.as_bytes())
    }

    #[test]
    fn edges_are_put_in_order_and_added_up() {
        let read = text("# from to bytes\n3 1 5\n\n1 3 7  # back\n2 2 9\n0,1,0.5\n").unwrap();
        assert_eq!(read.edges, [(0, 1, 0.5), (1, 3, 12.0)]);
        assert_eq!((read.vertices, read.weighted, read.loops), (4, true, 1));
        assert_eq!(text("0 1\n1 0\n").unwrap().edges, [(0, 1, 1.0)]);
        assert_eq!(text("").unwrap().vertices, 0);
    }

    #[test]
    fn faults_are_named_with_their_line() {
        for (wrong, line, named) in [
            ("0 1\n2\n", 2, "two ranks"),
            ("0 1\n1 x\n", 2, "'x'"),
            ("0 -1\n", 1, "'-1'"),
            ("0 1.5\n", 1, "'1.5'"),
            ("0 99999999999999999999999\n", 1, "no rank"),
            ("0 4000000000\n", 1, "too high"),
            ("0 1 nan\n", 1, "volume"),
            ("0 1 -3\n", 1, "volume"),
            ("0 1 2 3\n", 1, "'3'"),
            ("0 1\n1 2 3\n", 2, "in line 1"),
            ("0 1 1e308\n1 0 1e308\n", 2, "ranks 0 and 1 have no sum"),
        ] {
            let fault = text(wrong).unwrap_err();
            assert!(fault.what.contains(named) && fault.line == line, "{fault:?}");
        }
        assert!(parse(&[0xff, 0xfe, b'\n'][..]).is_err());
    }
}
