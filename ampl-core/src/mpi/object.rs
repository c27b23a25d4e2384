//! Kinds of objects that programs make.

use super::Kind;

/// Kinds of objects that programs make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// `MPI_Comm`
    Comm,
    /// `MPI_Datatype`
    Type,
    /// `MPI_Op`
    Op,
    /// `MPI_Group`
    Group,
    /// `MPI_Info`
    Info,
    /// `MPI_Errhandler`
    Errhandler,
    /// `MPI_File`
    File,
    /// `MPI_Win`
    Win,
    /// `MPI_Message`
    Message,
    /// `MPI_Session`
    Session,
    /// `MPI_Request`
    Request,
}

impl ObjectKind {
    /// Number of kinds.
    pub const COUNT: usize = 11;

    /// The prefix in decoded output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Type => "type",
            Self::Op => "op",
            Self::Group => "group",
            Self::Info => "info",
            Self::Errhandler => "errhandler",
            Self::File => "file",
            Self::Win => "win",
            Self::Message => "message",
            Self::Session => "session",
            Self::Request => "request",
        }
    }

    /// The object kind that parameters of `kind` name, if they name objects.
    pub fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Comm => Self::Comm,
            Kind::Datatype => Self::Type,
            Kind::Op => Self::Op,
            Kind::Group => Self::Group,
            Kind::Info => Self::Info,
            Kind::Errhandler => Self::Errhandler,
            Kind::File => Self::File,
            Kind::Win => Self::Win,
            Kind::Message => Self::Message,
            Kind::Session => Self::Session,
            Kind::Request => Self::Request,
            _ => return None,
        })
    }
}
