//! The answer for people: a sentence for each pattern, and small grids drawn.

use std::io::{self, Write};

use ampl_analysis::topology::{
    Axis, Facts, Found, Input, Parent, Pattern, Placed, Report, Shape, Share, printed,
};

use super::{AXES, describe, rank_set};
use crate::human::{bytes, count, cut, digits, percent, plural};

/// Widest picture, and most lines of one, counted in ranks.
const MOST_COLUMNS: usize = 100;
const MOST_ROWS: u32 = 24;

/// Copies that are drawn.
const MOST_DRAWN: usize = 2;

/// Places that are named.
const MOST_SITES: usize = 6;

/// Writes what was `found` in `input`, of which `report` has the shares.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, input: &Input, found: &[Found], report: &Report) -> io::Result<()> {
    let edges = count(input.edges as u64);
    let ranks = plural(input.vertices.into(), "rank");
    match &input.facts {
        None => writeln!(out, "{ranks}, {edges} edges")?,
        Some(facts) => {
            let messages = plural(facts.messages, "message");
            let pairs = plural(input.edges as u64, "pair");
            writeln!(
                out,
                "{ranks}, {messages} of {} between {pairs} (structure, exact)",
                bytes(facts.bytes as f64)
            )?;
            print_facts(out, facts)?;
        }
    }
    if input.loops > 0 {
        let what = if input.facts.is_some() { "message" } else { "edge" };
        writeln!(out, "  {} from a rank to itself left out", plural(input.loops, what))?;
    }
    let mut rows = report.patterns.iter().map(|pattern| pattern.share);
    for (found, sites) in found.iter().zip(&input.sites) {
        for pattern in &found.topology.patterns {
            let printed = printed(pattern);
            print_pattern(out, &printed, found, rows.next(), input.facts.is_some())?;
            print_sites(out, sites)?;
            draw(out, pattern, &printed)?;
        }
        let unknown = &found.topology.unknown;
        if !unknown.is_empty() {
            let mut ranks: Vec<u32> = unknown.iter().flatten().copied().collect();
            ranks.sort_unstable();
            writeln!(out, "\nnone of the known topologies{}", share(rows.next(), input.facts.is_some()))?;
            writeln!(out, "  ranks       {}", cut(&rank_set(ranks), 80))?;
            print_sites(out, sites)?;
        }
    }
    if !input.isolated.is_empty() && (found.len() <= 1 || input.facts.is_some()) {
        let what = if input.facts.is_some() { "no messages to other ranks" } else { "no edges" };
        writeln!(out, "\n{what}\n  ranks       {}", cut(&rank_set(input.isolated.iter().copied()), 80))?;
    }
    Ok(())
}

/// Writes what is missing.
fn print_facts(out: &mut impl Write, facts: &Facts) -> io::Result<()> {
    let mut line = |text: String| writeln!(out, "  {text}");
    if facts.one_sided > 0 {
        line(format!("{} of them one-sided", count(facts.one_sided)))?;
    }
    if facts.neighbour_collectives > 0 {
        line(format!("{} of them in collectives of neighbours", count(facts.neighbour_collectives)))?;
    }
    if !facts.missing.is_empty() {
        line(format!("no calls are recorded of ranks {}", cut(&facts.missing, 60)))?;
    }
    if !facts.gaps.is_empty() {
        line(format!(
            "some calls were only counted on ranks {}: their messages are not in it",
            cut(&facts.gaps, 60)
        ))?;
    }
    if facts.calls_without_arguments > 0 {
        line(format!("arguments are not known of {}", plural(facts.calls_without_arguments, "call")))?;
    }
    if facts.unplaced_messages > 0 {
        line(format!("partners are not known of {}", plural(facts.unplaced_messages, "message")))?;
    }
    if facts.unsized_messages > 0 {
        line(format!("bytes are not known of {}", plural(facts.unsized_messages, "message")))?;
    }
    if facts.received_only > 0 {
        line(format!("{} known from receives only", plural(facts.received_only, "message")))?;
    }
    Ok(())
}

fn print_sites(out: &mut impl Write, sites: &[String]) -> io::Result<()> {
    for (at, site) in sites.iter().take(MOST_SITES).enumerate() {
        writeln!(out, "  {}  {site}", if at == 0 { "sent at   " } else { "          " })?;
    }
    if sites.len() > MOST_SITES {
        writeln!(out, "              … and {} more", sites.len() - MOST_SITES)?;
    }
    Ok(())
}

fn share(share: Option<Share>, of_run: bool) -> String {
    match share {
        Some(Share { bytes_share: Some(bytes), calls_share, .. })
            if bytes < 1.0 || calls_share.is_some_and(|calls| calls < 1.0) =>
        {
            match calls_share.filter(|_| of_run) {
                Some(calls) => {
                    format!(": {} of the bytes, {} of the messages", percent(bytes), percent(calls))
                }
                None => format!(": {} of the volume", percent(bytes)),
            }
        }
        Some(Share { edges_share, .. }) if edges_share < 1.0 => {
            format!(": {} of the edges", percent(edges_share))
        }
        _ => String::new(),
    }
}

fn print_pattern(
    out: &mut impl Write,
    pattern: &Pattern,
    found: &Found,
    of: Option<Share>,
    of_run: bool,
) -> io::Result<()> {
    let copies = match pattern.copies.len() {
        1 => String::new(),
        many => format!("{many} copies of "),
    };
    writeln!(out, "\n{copies}{}{}", describe(&pattern.shape), share(of, of_run))?;
    let mut ranks: Vec<u32> = pattern.copies.iter().flat_map(|copy| copy.ranks.iter().copied()).collect();
    ranks.sort_unstable();
    writeln!(out, "  ranks       {}", cut(&rank_set(ranks), 80))?;
    writeln!(
        out,
        "  verified    every rank has coordinates, and its neighbours are those of the definition"
    )?;
    if let Some(directions) = directions(&pattern.shape) {
        writeln!(out, "  neighbours  {directions}")?;
    }
    if !pattern.aliases.is_empty() {
        let aliases: Vec<String> = pattern.aliases.iter().map(describe).collect();
        writeln!(out, "  the same as {}", aliases.join("; "))?;
    }
    if let Some(least) = found.least {
        writeln!(out, "  edges       those of a volume from {}; the others follow", digits(least))?;
    }
    Ok(())
}

/// Draws small copies along the axes of `pattern`, and names places of ranks in others, of which it is `printed`.
fn draw(out: &mut impl Write, pattern: &Pattern, printed: &Pattern) -> io::Result<()> {
    let both = pattern.copies.iter().zip(&printed.copies);
    for (drawn, copy) in both.take(MOST_DRAWN) {
        match drawing(&pattern.shape, drawn) {
            Some(lines) => {
                if pattern.shape != printed.shape {
                    writeln!(out, "  drawn as    {}", describe(&pattern.shape))?;
                }
                writeln!(out)?;
                lines.iter().try_for_each(|line| writeln!(out, "    {}", line.trim_end()))?;
            }
            None => {
                let places = copy.ranks.iter().zip(&copy.positions).take(4);
                let text = |(rank, &position): (&u32, &u32)| {
                    let place = printed.shape.coordinates(position);
                    let place: Vec<String> = place.iter().map(u32::to_string).collect();
                    format!("{rank} at ({})", place.join(", "))
                };
                let more = if copy.ranks.len() > 4 { ", …" } else { "" };
                writeln!(out, "  places      {}{more}", places.map(text).collect::<Vec<_>>().join(", "))?;
            }
        }
    }
    let drawn = pattern.copies.len().min(MOST_DRAWN);
    if pattern.copies.len() > drawn {
        writeln!(out, "  … and {} more, see --json", pattern.copies.len() - drawn)?;
    }
    Ok(())
}

fn directions(shape: &Shape) -> Option<String> {
    let each = |axes: &[Axis]| {
        let names: Vec<String> =
            AXES.iter().take(axes.len()).map(|name| format!("-{name}, +{name}")).collect();
        names.join(", ")
    };
    Some(match shape {
        Shape::Lattice(axes) if axes.len() <= AXES.len() => each(axes),
        Shape::Line(_) | Shape::Ring(_) => "-x, +x".into(),
        Shape::Skewed(axes) => format!("{}, (+x, -y), (-x, +y)", each(axes)),
        Shape::Moore(_) => "at most 1 along every axis".into(),
        Shape::Hypercube(_) => "one coordinate flipped".into(),
        Shape::Hamming(_) => "one coordinate changed to any other".into(),
        Shape::Tree { arity, .. } => format!("the parent of x is (x - 1) / {arity}"),
        Shape::BinomialTree { parent: Parent::WithoutLowestBit, .. } => {
            "the parent of x has its lowest bit cleared".into()
        }
        Shape::BinomialTree { .. } => "the parent of x has its highest bit cleared".into(),
        Shape::Cg { .. } => "(x, y) with (x, y with one bit flipped) and with (y, x)".into(),
        Shape::Butterfly(_) => "(x, y) with (x + 1, y) and (x + 1, y with bit x flipped)".into(),
        _ => return None,
    })
}

/// The ranks of `copy` where they are, of small shapes of one or two axes: x downwards, y to the right.
fn drawing(shape: &Shape, copy: &Placed) -> Option<Vec<String>> {
    let mut axes = match shape {
        Shape::Line(_) | Shape::Ring(_) | Shape::Lattice(_) | Shape::Skewed(_) | Shape::Moore(_) => {
            shape.axes()
        }
        _ => return None,
    };
    if axes.len() == 1 {
        axes.insert(0, Axis { size: 1, periodic: false });
    }
    let &[x, y] = &axes[..] else { return None };
    let width = copy.ranks.last()?.to_string().len();
    let columns = y.size as usize * (width + 3) + 4;
    if columns > MOST_COLUMNS || x.size > MOST_ROWS {
        return None;
    }
    let mut ranks = vec![0; copy.ranks.len()];
    for (&rank, &position) in copy.ranks.iter().zip(&copy.positions) {
        ranks[position as usize] = rank;
    }
    let (before, after) = if y.periodic { ("~ ", " ~") } else { ("  ", "") };
    // Between two rows: a stroke under each rank, and the diagonals between.
    let diagonal = match shape {
        Shape::Skewed(_) => " / ",
        Shape::Moore(_) => " X ",
        _ => "   ",
    };
    let strokes = |stroke: &str, between: &str| {
        let cells = vec![format!("{stroke:>width$}"); y.size as usize];
        format!("  {}", cells.join(between))
    };
    let mut lines = Vec::new();
    if x.periodic {
        lines.push(strokes("~", "   "));
    }
    for (row, cells) in ranks.chunks(y.size as usize).enumerate() {
        if row > 0 {
            lines.push(strokes("|", diagonal));
        }
        let cells: Vec<String> = cells.iter().map(|rank| format!("{rank:>width$}")).collect();
        lines.push(format!("{before}{}{after}", cells.join(" - ")));
    }
    if x.periodic {
        lines.push(strokes("~", "   "));
    }
    Some(lines)
}
