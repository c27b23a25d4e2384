//! Reasons for which a run cannot be opened.

use std::fmt::{Display, Formatter};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ampl_trace::ReadError;

use crate::names::TRACE;

/// Reason for which there is no run to read at a place.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// No file or directory is at the path.
    Absent {
        /// The path that was asked for, or the trace file in it.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The file is there, and the system does not let it be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The system does not let this user read it.
    Denied {
        /// The file or directory.
        path: PathBuf,
        /// Number of the user that it belongs to, where that can be seen.
        owner: Option<u32>,
    },
    /// The file is no trace file, or one of another version.
    NotATrace {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        error: ReadError,
    },
    /// The directory holds neither a trace file nor journals.
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The job has left no trace file, and kept no journals.
    JournalsOff {
        /// The run directory.
        path: PathBuf,
    },
    /// The job has left no trace file, and its journals are not where it had them.
    JournalsGone {
        /// The run directory.
        path: PathBuf,
        /// The directory that the job had them in.
        journals: PathBuf,
    },
    /// No journal can be read.
    BadJournals {
        /// Their directory.
        path: PathBuf,
        /// The first one's damage.
        damage: String,
    },
}

impl OpenError {
    /// The error of a file or directory that this user may not open; `None` of others.
    pub(crate) fn denied(path: &Path) -> Option<Self> {
        let error = File::open(path).err()?;
        (error.kind() == io::ErrorKind::PermissionDenied).then(|| Self::Denied {
            path: path.to_owned(),
            owner: fs::metadata(path).ok().map(|found| found.uid()),
        })
    }

    /// The path that it concerns.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Absent { path, .. }
            | Self::Unreadable { path, .. }
            | Self::Denied { path, .. }
            | Self::NotATrace { path, .. }
            | Self::Empty { path }
            | Self::JournalsOff { path }
            | Self::JournalsGone { path, .. }
            | Self::BadJournals { path, .. } => path,
        }
    }

    /// True where nothing of a run is there; false where it is damaged.
    pub fn is_absent(&self) -> bool {
        !matches!(
            self,
            Self::Unreadable { .. } | Self::Denied { .. } | Self::NotATrace { .. } | Self::BadJournals { .. }
        )
    }
}

impl Display for OpenError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let name = |path: &PathBuf| {
            path.file_name().map_or_else(|| TRACE.into(), |name| name.to_string_lossy().into_owned())
        };
        match self {
            Self::Absent { error, .. } => write!(f, "no such run: {error}"),
            Self::Unreadable { path, error } => write!(f, "cannot read {}: {error}", name(path)),
            Self::Denied { path, owner: Some(owner) } => {
                write!(f, "cannot read {}: permission denied, it belongs to user {owner}", name(path))
            }
            Self::Denied { path, owner: None } => write!(f, "cannot read {}: permission denied", name(path)),
            Self::NotATrace { path, error } => write!(f, "cannot read {}: {error}", name(path)),
            Self::Empty { .. } => f.write_str("neither a trace nor journals"),
            Self::JournalsOff { .. } => write!(f, "no {TRACE}, and journals were off"),
            Self::JournalsGone { journals, .. } => {
                write!(f, "no {TRACE}, and no journals in {}", journals.display())
            }
            Self::BadJournals { damage, .. } => write!(f, "no journal can be read: {damage}"),
        }
    }
}

impl std::error::Error for OpenError {}
