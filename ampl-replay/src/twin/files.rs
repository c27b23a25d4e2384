//! Files of a replay: scratch files in place of the program's.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Fate of calls for files.
#[derive(Debug)]
pub enum Files {
    /// They are left out.
    Skipped,
    /// They go to files in this directory.
    In(PathBuf),
}

/// Functions whose text is the name of a file.
const NAMING: [&str; 2] = ["MPI_File_open", "MPI_File_delete"];
/// Length of a scratch file that a program expects to be there: it takes no space until it is written.
const SPARSE: u64 = 1 << 30;

impl Files {
    /// True where calls for files are left out.
    pub fn are_skipped(&self) -> bool {
        matches!(self, Self::Skipped)
    }

    /// The text that `function` gets in place of `text`.
    pub fn text(&self, function: &str, text: &str) -> String {
        match self {
            Self::In(directory) if NAMING.contains(&function) => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                directory.join(format!("{:016x}", hasher.finish())).to_string_lossy().into_owned()
            }
            _ => text.to_owned(),
        }
    }

    /// Makes the directory, by one rank.
    pub fn begin(&self) -> std::io::Result<()> {
        if let Self::In(directory) = self { std::fs::create_dir_all(directory) } else { Ok(()) }
    }

    /// Makes a file that a call expects to exist, before it is opened.
    pub fn expect(&self, text: &str) {
        if let Self::In(_) = self {
            let path = self.text(NAMING[0], text);
            if let Ok(file) = std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
                _ = file.set_len(SPARSE);
            }
        }
    }

    /// Removes the directory, by one rank.
    pub fn end(&self) {
        if let Self::In(directory) = self {
            _ = std::fs::remove_dir_all(directory);
        }
    }
}
