//! The ABI of MPI-5.0: handles are pointers with small fixed values.

use super::data::{Abi, Predefined::*, Sentinel};
use ampl_core::mpi::Kind;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::value::ObjectKind::*;

/// The ABI of MPI-5.0 chapter 20.
///
/// Source: `mpi_abi.h` of MPICH 5.0.2. The Fortran interface is not part of the ABI.
pub(crate) static ABI: Abi = Abi {
    family: AbiFamily::Standard,
    handle_bytes: 8,
    status_bytes: 32,
    status_source_offset: 0,
    status_tag_offset: 4,
    status_error_offset: 8,
    any_source: -1,
    any_tag: -2,
    proc_null: -3,
    root: -4,
    undefined: -32766,
    cart: 211,
    graph: 212,
    dist_graph: 213,
    thread_serialized: 2048,
    error_truncate: 15,
    error_in_status: 19,
    error_pending: 18,
    // MPICH's codes are its classes' numbers and more above them.
    error_class_mask: 0x7f,
    number_keys: &[
        (501, Kind::Int),  // MPI_TAG_UB
        (502, Kind::Int),  // MPI_IO
        (503, Kind::Int),  // MPI_HOST
        (504, Kind::Int),  // MPI_WTIME_IS_GLOBAL
        (505, Kind::Int),  // MPI_APPNUM
        (506, Kind::Int),  // MPI_LASTUSEDCODE
        (507, Kind::Int),  // MPI_UNIVERSE_SIZE
        (602, Kind::Int),  // MPI_WIN_DISP_UNIT
        (603, Kind::Aint), // MPI_WIN_SIZE
        (604, Kind::Int),  // MPI_WIN_CREATE_FLAVOR
        (605, Kind::Int),  // MPI_WIN_MODEL
    ],
    in_place: 1,
    bottom: 0,
    status_ignore: 0,
    statuses_ignore: 0,
    errcodes_ignore: 0,
    buffer_automatic: Some(2),
    unweighted: Sentinel::Word(10),
    weights_empty: Sentinel::Word(11),
    fortran: &[],
    predefined: &[
        (Comm, "MPI_COMM_NULL", Word(0x100)),
        (Comm, "MPI_COMM_SELF", Word(0x102)),
        (Comm, "MPI_COMM_WORLD", Word(0x101)),
        (Type, "MPI_2DOUBLE_PRECISION", Word(0x231)),
        (Type, "MPI_2INT", Word(0x22b)),
        (Type, "MPI_2INTEGER", Word(0x232)),
        (Type, "MPI_2REAL", Word(0x230)),
        (Type, "MPI_AINT", Word(0x201)),
        (Type, "MPI_BYTE", Word(0x247)),
        (Type, "MPI_CHAR", Word(0x243)),
        (Type, "MPI_CHARACTER", Word(0x21e)),
        (Type, "MPI_COMPLEX", Word(0x21b)),
        (Type, "MPI_COMPLEX16", Word(0x2e3)),
        (Type, "MPI_COMPLEX32", Word(0x2eb)),
        (Type, "MPI_COMPLEX4", Word(0x2d3)),
        (Type, "MPI_COMPLEX8", Word(0x2db)),
        (Type, "MPI_COUNT", Word(0x202)),
        (Type, "MPI_CXX_BOOL", Word(0x239)),
        (Type, "MPI_CXX_DOUBLE_COMPLEX", Word(0x217)),
        (Type, "MPI_CXX_FLOAT_COMPLEX", Word(0x213)),
        (Type, "MPI_CXX_LONG_DOUBLE_COMPLEX", Word(0x225)),
        (Type, "MPI_C_BOOL", Word(0x238)),
        (Type, "MPI_C_DOUBLE_COMPLEX", Word(0x216)),
        (Type, "MPI_C_FLOAT_COMPLEX", Word(0x212)),
        (Type, "MPI_C_LONG_DOUBLE_COMPLEX", Word(0x224)),
        (Type, "MPI_DATATYPE_NULL", Word(0x200)),
        (Type, "MPI_DOUBLE", Word(0x214)),
        (Type, "MPI_DOUBLE_COMPLEX", Word(0x21d)),
        (Type, "MPI_DOUBLE_INT", Word(0x229)),
        (Type, "MPI_DOUBLE_PRECISION", Word(0x21c)),
        (Type, "MPI_FLOAT", Word(0x210)),
        (Type, "MPI_FLOAT_INT", Word(0x228)),
        (Type, "MPI_INT", Word(0x209)),
        (Type, "MPI_INT16_T", Word(0x248)),
        (Type, "MPI_INT32_T", Word(0x250)),
        (Type, "MPI_INT64_T", Word(0x258)),
        (Type, "MPI_INT8_T", Word(0x240)),
        (Type, "MPI_INTEGER", Word(0x219)),
        (Type, "MPI_INTEGER1", Word(0x2c1)),
        (Type, "MPI_INTEGER16", Word(0x2e1)),
        (Type, "MPI_INTEGER2", Word(0x2c9)),
        (Type, "MPI_INTEGER4", Word(0x2d1)),
        (Type, "MPI_INTEGER8", Word(0x2d9)),
        (Type, "MPI_LOGICAL", Word(0x218)),
        (Type, "MPI_LOGICAL1", Word(0x2c0)),
        (Type, "MPI_LOGICAL16", Word(0x2e0)),
        (Type, "MPI_LOGICAL2", Word(0x2c8)),
        (Type, "MPI_LOGICAL4", Word(0x2d0)),
        (Type, "MPI_LOGICAL8", Word(0x2d8)),
        (Type, "MPI_LONG", Word(0x20a)),
        (Type, "MPI_LONG_DOUBLE", Word(0x220)),
        (Type, "MPI_LONG_DOUBLE_INT", Word(0x22d)),
        (Type, "MPI_LONG_INT", Word(0x22a)),
        (Type, "MPI_LONG_LONG", Word(0x20b)),
        (Type, "MPI_OFFSET", Word(0x203)),
        (Type, "MPI_PACKED", Word(0x207)),
        (Type, "MPI_REAL", Word(0x21a)),
        (Type, "MPI_REAL16", Word(0x2e2)),
        (Type, "MPI_REAL2", Word(0x2ca)),
        (Type, "MPI_REAL4", Word(0x2d2)),
        (Type, "MPI_REAL8", Word(0x2da)),
        (Type, "MPI_SHORT", Word(0x208)),
        (Type, "MPI_SHORT_INT", Word(0x22c)),
        (Type, "MPI_SIGNED_CHAR", Word(0x244)),
        (Type, "MPI_UINT16_T", Word(0x249)),
        (Type, "MPI_UINT32_T", Word(0x251)),
        (Type, "MPI_UINT64_T", Word(0x259)),
        (Type, "MPI_UINT8_T", Word(0x241)),
        (Type, "MPI_UNSIGNED", Word(0x20d)),
        (Type, "MPI_UNSIGNED_CHAR", Word(0x245)),
        (Type, "MPI_UNSIGNED_LONG", Word(0x20e)),
        (Type, "MPI_UNSIGNED_LONG_LONG", Word(0x20f)),
        (Type, "MPI_UNSIGNED_SHORT", Word(0x20c)),
        (Type, "MPI_WCHAR", Word(0x23c)),
        (Op, "MPI_BAND", Word(0x28)),
        (Op, "MPI_BOR", Word(0x29)),
        (Op, "MPI_BXOR", Word(0x2a)),
        (Op, "MPI_LAND", Word(0x30)),
        (Op, "MPI_LOR", Word(0x31)),
        (Op, "MPI_LXOR", Word(0x32)),
        (Op, "MPI_MAX", Word(0x23)),
        (Op, "MPI_MAXLOC", Word(0x39)),
        (Op, "MPI_MIN", Word(0x22)),
        (Op, "MPI_MINLOC", Word(0x38)),
        (Op, "MPI_NO_OP", Word(0x3d)),
        (Op, "MPI_OP_NULL", Word(0x20)),
        (Op, "MPI_PROD", Word(0x24)),
        (Op, "MPI_REPLACE", Word(0x3c)),
        (Op, "MPI_SUM", Word(0x21)),
        (Group, "MPI_GROUP_EMPTY", Word(0x109)),
        (Group, "MPI_GROUP_NULL", Word(0x108)),
        (Info, "MPI_INFO_ENV", Word(0x131)),
        (Info, "MPI_INFO_NULL", Word(0x130)),
        (Errhandler, "MPI_ERRHANDLER_NULL", Word(0x140)),
        (Errhandler, "MPI_ERRORS_ABORT", Word(0x142)),
        (Errhandler, "MPI_ERRORS_ARE_FATAL", Word(0x141)),
        (Errhandler, "MPI_ERRORS_RETURN", Word(0x143)),
        (File, "MPI_FILE_NULL", Word(0x118)),
        (Win, "MPI_WIN_NULL", Word(0x110)),
        (Message, "MPI_MESSAGE_NO_PROC", Word(0x129)),
        (Message, "MPI_MESSAGE_NULL", Word(0x128)),
        (Session, "MPI_SESSION_NULL", Word(0x120)),
        (Request, "MPI_REQUEST_NULL", Word(0x180)),
    ],
};

#[cfg(test)]
mod tests {
    use super::ABI;

    #[test]
    fn table_is_consistent() {
        super::super::data::check(&ABI);
    }

    #[test]
    fn known_handles_are_as_in_the_header() {
        use super::*;
        assert_eq!(ABI.find(Comm, "MPI_COMM_WORLD"), Some(Word(0x101)));
        assert_eq!(ABI.find(Type, "MPI_DOUBLE"), Some(Word(0x214)));
        assert_eq!(ABI.find(Op, "MPI_SUM"), Some(Word(0x21)));
    }
}
