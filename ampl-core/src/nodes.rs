//! Files of a run directory that say, host by host, which processes have journals and where: `nodes/HOST`.
//!
//! Each rank appends its line in `MPI_Init`. After a death nothing else says what other hosts hold.

use std::fmt;
use std::path::PathBuf;

/// The directory of these files in a run directory.
pub const NODES: &str = "nodes";

/// A process of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRank {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Process number in its namespace.
    pub pid: u32,
    /// Start of the process, clock ticks since the boot.
    pub started: u64,
    /// The namespace of process numbers, as its inode says.
    pub pid_namespace: u64,
    /// Directory of its journal.
    pub journals: PathBuf,
}

impl fmt::Display for NodeRank {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, pid, started, pid_namespace, journals } = self;
        let journals = journals.to_string_lossy();
        writeln!(
            out,
            "rank={rank} pid={pid} started={started} pid_namespace={pid_namespace} journals={journals:?}"
        )
    }
}

impl NodeRank {
    /// The ranks in the lines of such a file; what is no such line is passed over.
    pub fn parse(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::line).collect()
    }

    fn line(line: &str) -> Option<Self> {
        let (numbers, journals) = line.split_once(" journals=")?;
        let number = |name: &str| -> Option<u64> {
            let word = numbers.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
            word.parse().ok()
        };
        Some(Self {
            rank: u32::try_from(number("rank")?).ok()?,
            pid: u32::try_from(number("pid")?).ok()?,
            started: number("started")?,
            pid_namespace: number("pid_namespace")?,
            journals: PathBuf::from(unquoted(journals)?),
        })
    }
}

/// Text that `{:?}` has quoted; `None` where `text` is not of that form.
fn unquoted(text: &str) -> Option<String> {
    let mut letters = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                quoted @ ('\\' | '"' | '\'') => quoted,
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let rank = |rank: u32, journals: &str| NodeRank {
            rank,
            pid: 7 + rank,
            started: 123_456_789_012,
            pid_namespace: 4_026_531_836,
            journals: journals.into(),
        };
        let ranks = [rank(0, "/dev/shm/ampl-0/a b=\"c\" journals=d\\"), rank(31, "/tmp/x")];
        let text: String = ranks.iter().map(NodeRank::to_string).collect();
        assert_eq!(NodeRank::parse(&text), ranks);
        // A process may have died while it wrote.
        assert_eq!(NodeRank::parse(&text[..text.len() - 3]), ranks[..1]);
        assert_eq!(NodeRank::parse("rank=1 pid=x\n\n"), []);
    }
}
