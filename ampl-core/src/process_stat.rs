//! Lines of `/proc/PID/stat`, as proc(5) describes them.

/// Fields of the line of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// State: `R`, `S`, `D`, `T` and others.
    pub state: char,
    /// Number of the parent process; 0 where there is none.
    pub parent: u32,
    /// Processor time of children that have ended and been waited for, user and system, clock ticks.
    pub children_ticks: u64,
    /// Start, clock ticks since the boot.
    pub started: u64,
}

impl ProcessStat {
    /// Fields of `line`; `None` where it is not whole.
    pub fn parse(line: &str) -> Option<Self> {
        // The program's name, in brackets, may hold anything.
        let mut words = line.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = words.next()?.chars().next()?;
        let parent = words.next()?.parse().ok()?;
        let user: u64 = words.nth(11)?.parse().ok()?;
        let system: u64 = words.next()?.parse().ok()?;
        let started = words.nth(4)?.parse().ok()?;
        Some(Self { state, parent, children_ticks: user.saturating_add(system), started })
    }

    /// True where the process has ended; its parent may not have asked for that yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// True where a signal or a debugger has stopped the process.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// True where the process began at `started`, clock ticks since the boot, and has not ended. Numbers of processes
    /// are used again: a later process of the same number began at another time.
    pub fn runs_since(&self, started: u64) -> bool {
        !self.has_ended() && self.started == started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line whose fields 3 to 24 are the state and their own numbers.
    fn line(name: &str, state: &str) -> String {
        let rest: Vec<String> = (4..=24).map(|field| field.to_string()).collect();
        format!("17 ({name}) {state} {}", rest.join(" "))
    }

    #[test]
    fn fields_are_those_of_the_manual_page() {
        let stat = ProcessStat { state: 'S', parent: 4, children_ticks: 16 + 17, started: 22 };
        assert_eq!(ProcessStat::parse(&line("program", "S")), Some(stat));
    }

    #[test]
    fn names_may_hold_brackets_blanks_and_states() {
        for name in ["a b", "a) Z 1 (b", ")))", "", "T (T) T"] {
            let stat = ProcessStat::parse(&line(name, "R")).expect(name);
            assert_eq!((stat.state, stat.started), ('R', 22), "{name}");
        }
    }

    #[test]
    fn lines_that_are_cut_have_no_fields() {
        let whole = line("program", "S");
        let needed = whole.len() - " 22 23 24".len();
        assert!((0..=needed).all(|end| ProcessStat::parse(&whole[..end]).is_none()));
        assert_eq!(ProcessStat::parse("17 (program) S x"), None);
    }

    #[test]
    fn zombies_and_later_processes_do_not_run() {
        let stat = |state| ProcessStat::parse(&line("program", state)).unwrap();
        assert!(stat("S").runs_since(22) && stat("T").runs_since(22) && !stat("S").runs_since(21));
        assert!(!stat("Z").runs_since(22) && stat("X").has_ended());
        assert!(stat("t").is_stopped() && !stat("S").is_stopped());
    }
}
