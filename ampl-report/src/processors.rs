//! A sentence on ranks that had less than a processor each.

use ampl_analysis::processors::{Disturbed, Limit, Sharing};

use crate::human::{count, digits, percent, plural};

/// One sentence for people; empty where nothing is shared.
pub fn text(sharing: &Sharing) -> String {
    let those = "the efficiencies below are the machine's, not the program's alone";
    if let Some(first) = sharing.hosts.first() {
        let ranks: usize = sharing.hosts.iter().map(|crowd| crowd.ranks).sum();
        let processors: f64 = sharing.hosts.iter().map(|crowd| crowd.processors).sum();
        let noun = if processors == 1.0 { "processor" } else { "processors" };
        let place = match sharing.hosts.len() {
            1 => String::new(),
            hosts => format!(" of {}", plural(hosts as u64, "host")),
        };
        let why = match first.limit {
            Limit::Node => "",
            Limit::Binding => " that they are bound to",
            Limit::ControlGroup => ", as many as their control group allows",
        };
        let all = plural(ranks as u64, "rank");
        // A clause between commas ends with one.
        let comma = if first.limit == Limit::ControlGroup { "," } else { "" };
        let ran = sharing
            .ran
            .map_or(String::new(), |ran| format!("{comma} and ran for {} of their time", percent(ran)));
        return format!("{all} share {} {noun}{place}{why}{ran}: {those}", digits(processors));
    }
    let Some(Disturbed { ranks, rank, per_second }) = &sharing.disturbed else { return String::new() };
    format!(
        "{} lost the processor to others often (rank {rank} {} times a second): {those}",
        plural(*ranks as u64, "rank"),
        count(per_second.round() as u64)
    )
}

#[cfg(test)]
mod tests {
    use ampl_analysis::processors::Crowd;

    use super::*;

    fn crowd(ranks: usize, processors: f64, limit: Limit) -> Crowd {
        Crowd { host: "a".into(), ranks, processors, limit }
    }

    #[test]
    fn a_sentence_has_ranks_processors_and_reason() {
        for (hosts, expected) in [
            (vec![crowd(8, 4.0, Limit::Node)], "8 ranks share 4 processors: the efficiencies below"),
            (vec![crowd(6, 4.0, Limit::Node); 2], "12 ranks share 8 processors of 2 hosts:"),
            (
                vec![crowd(4, 1.5, Limit::ControlGroup)],
                "4 ranks share 1.50 processors, as many as their control",
            ),
            (vec![crowd(2, 1.0, Limit::Binding)], "2 ranks share 1 processor that they are bound to:"),
        ] {
            let said = text(&Sharing { hosts, disturbed: None, ran: None });
            assert!(said.starts_with(expected), "{said}");
        }
        let hosts = vec![crowd(16, 2.0, Limit::Node)];
        let said = text(&Sharing { hosts, disturbed: None, ran: Some(0.0716) });
        assert!(
            said.starts_with("16 ranks share 2 processors and ran for 7.16 % of their time: the"),
            "{said}"
        );
        let disturbed = Some(Disturbed { ranks: 1, rank: 1, per_second: 180.0 });
        let said = text(&Sharing { hosts: Vec::new(), disturbed, ran: Some(0.5) });
        assert!(said.starts_with("1 rank lost the processor to others often (rank 1 180 times"), "{said}");
        assert_eq!(text(&Sharing::default()), "");
    }
}
