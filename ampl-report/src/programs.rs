//! The title of a job of several programs.

use ampl_analysis::programs::Program;

/// Programs that a title names; it counts the others.
const NAMED: usize = 12;

/// The title of a job of several programs: `a (ranks 0-1) : b (2-4)`.
pub fn title(programs: &[Program]) -> String {
    let mut parts: Vec<String> = programs
        .iter()
        .take(NAMED)
        .map(|Program { program, ranks }| format!("{program} ({ranks})"))
        .collect();
    if let (Some(part), Some(Program { program, ranks })) = (parts.first_mut(), programs.first()) {
        let word = if ranks.contains(['-', ',']) { "ranks" } else { "rank" };
        *part = format!("{program} ({word} {ranks})");
    }
    if programs.len() > NAMED {
        parts.push(format!("{} more programs", programs.len() - NAMED));
    }
    parts.join(" : ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_names_programs_with_their_ranks() {
        let titled = |programs: &[(&str, &str)]| {
            let of =
                |&(program, ranks): &(&str, &str)| Program { program: program.into(), ranks: ranks.into() };
            title(&programs.iter().map(of).collect::<Vec<_>>())
        };
        assert_eq!(titled(&[("lead", "0-1"), ("b", "2-4")]), "lead (ranks 0-1) : b (2-4)");
        assert_eq!(titled(&[("./lead", "0"), ("old/lead", "1")]), "./lead (rank 0) : old/lead (1)");
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|number| ("p", number.as_str())).collect();
        assert!(titled(&many).ends_with("p (11) : 8 more programs"), "{}", titled(&many));
    }
}
