//! A run on a network of zero cost, as text.

use ampl_analysis::ideal_network::{Ideal, Unknown};

use crate::human::{count, duration, percent, plural, wrap};

/// Lines of the critical path that are printed.
const SHOWN: usize = 8;

/// The evaluation in lines of at most `width` characters.
pub fn text(ideal: &Ideal, width: usize) -> String {
    let time = |ns: u64| duration(ns as f64);
    let mut lines = vec![format!(
        "On a network that costs nothing the run would take {} instead of {}.",
        time(ideal.ideal_ns),
        time(ideal.recorded_ns)
    )];
    let mut row = |name: &str, value: f64, meaning: &str| {
        let text = format!("  {name:<16}{:>8}   {meaning}", percent(value));
        lines.extend(wrap(&text, width, &" ".repeat(29)));
    };
    row("load balance", ideal.load_balance, "mean over greatest compute time of a rank");
    row(
        "serialisation",
        ideal.serialisation,
        "greatest compute time over the ideal length: the rest waits for computing",
    );
    row("transfer", ideal.transfer, "ideal over recorded length: the rest is the network's and MPI's");
    row("parallel", ideal.parallel, "product of all three");
    lines.push(format!("Critical path: {}", time(ideal.critical_path.ns)));
    for own in ideal.critical_path.sites.iter().take(SHOWN) {
        let site = own.site.as_ref().map_or(String::new(), |site| format!(" @ {site}"));
        lines.push(format!(
            "  {:>8}  {:>8}  before {}{site}",
            time(own.ns),
            percent(own.share),
            own.function
        ));
    }
    for own in ideal.critical_path.ranks.iter().take(SHOWN) {
        let host = if own.host.is_empty() { String::new() } else { format!(" on {}", own.host) };
        lines.push(format!("  {:>8}  {:>8}  rank {}{host}", time(own.ns), percent(own.share), own.rank));
    }
    let [messages, collectives] = ideal.followed;
    let basis = match ideal.modelled {
        0.0 => "All compute times are measured between kept calls.".to_owned(),
        share => format!(
            "{} of the compute time is modelled: known as sums of ranks, divided like the kept times.",
            percent(share)
        ),
    };
    let followed = format!(
        "{basis} Dependences: {}, {}.",
        plural(messages, "message"),
        plural(collectives, "collective")
    );
    lines.extend(wrap(&followed, width, "  "));
    if !ideal.not_followed.is_empty() {
        let each =
            ideal.not_followed.iter().map(|(function, calls)| format!("{} of {function}", count(*calls)));
        let text = format!(
            "Not followed, so the length is a lower bound: calls {}.",
            each.collect::<Vec<_>>().join(", ")
        );
        lines.extend(wrap(&text, width, "  "));
    }
    lines.join("\n") + "\n"
}

/// Reason why there is no evaluation, and a remedy.
pub fn refusal(unknown: &Unknown) -> (String, &'static str) {
    match unknown {
        Unknown::NotWhole(lost) => (
            format!("the calls of {} are not all recorded", plural(lost.len() as u64, "rank")),
            "see 'ampl info' for what is missing",
        ),
        Unknown::NoTimes => (
            "nothing is known of the time between calls".into(),
            "set trace.timing = \"all\" for the next run, or let it run for longer",
        ),
    }
}
