//! MPICH and its relatives (Intel MPI, MVAPICH, Cray MPICH): handles are 32-bit numbers.

use super::data::{Abi, FortranSentinel::*, Predefined::*, Sentinel};
use ampl_core::mpi::Kind;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::value::ObjectKind::*;

/// The MPICH ABI.
///
/// Source: `mpi.h` of MPICH 4.0.2 and 5.0.2, which agree except that 4.0 has no `MPI_INTEGER16`
/// (there the name is `MPI_DATATYPE_NULL`) and fewer types of one or two bytes.
pub(crate) static ABI: Abi = Abi {
    family: AbiFamily::Mpich,
    handle_bytes: 4,
    status_bytes: 20,
    status_source_offset: 8,
    status_tag_offset: 12,
    status_error_offset: 16,
    any_source: -2,
    any_tag: -1,
    proc_null: -1,
    root: -3,
    undefined: -32766,
    cart: 2,
    graph: 1,
    dist_graph: 3,
    thread_serialized: 2,
    error_truncate: 14,
    error_in_status: 17,
    error_pending: 18,
    error_class_mask: 0x7f,
    number_keys: &[
        (0x6440_0001, Kind::Int),  // MPI_TAG_UB
        (0x6440_0003, Kind::Int),  // MPI_HOST
        (0x6440_0005, Kind::Int),  // MPI_IO
        (0x6440_0007, Kind::Int),  // MPI_WTIME_IS_GLOBAL
        (0x6440_0009, Kind::Int),  // MPI_UNIVERSE_SIZE
        (0x6440_000b, Kind::Int),  // MPI_LASTUSEDCODE
        (0x6440_000d, Kind::Int),  // MPI_APPNUM
        (0x6600_0003, Kind::Aint), // MPI_WIN_SIZE
        (0x6600_0005, Kind::Int),  // MPI_WIN_DISP_UNIT
        (0x6600_0007, Kind::Int),  // MPI_WIN_CREATE_FLAVOR
        (0x6600_0009, Kind::Int),  // MPI_WIN_MODEL
    ],
    in_place: usize::MAX,
    bottom: 0,
    status_ignore: 1,
    statuses_ignore: 1,
    errcodes_ignore: 0,
    buffer_automatic: Some(usize::MAX - 1),
    unweighted: Sentinel::ValueOf("MPI_UNWEIGHTED"),
    weights_empty: Sentinel::ValueOf("MPI_WEIGHTS_EMPTY"),
    fortran: &[
        (InPlace, Sentinel::ValueOf("MPIR_F_MPI_IN_PLACE")),
        (Bottom, Sentinel::ValueOf("MPIR_F_MPI_BOTTOM")),
        (StatusIgnore, Sentinel::ValueOf("MPI_F_STATUS_IGNORE")),
        (StatusesIgnore, Sentinel::ValueOf("MPI_F_STATUSES_IGNORE")),
        (ErrcodesIgnore, Sentinel::ValueOf("MPI_F_ERRCODES_IGNORE")),
        (Unweighted, Sentinel::ValueOf("MPIR_F_MPI_UNWEIGHTED")),
        (WeightsEmpty, Sentinel::ValueOf("MPIR_F_MPI_WEIGHTS_EMPTY")),
        (ArgvNull, Sentinel::ValueOf("MPI_F_ARGV_NULL")),
        (ArgvsNull, Sentinel::ValueOf("MPI_F_ARGVS_NULL")),
        (InPlace, Sentinel::AddressOf("MPIR_F08_MPI_IN_PLACE")),
        (Bottom, Sentinel::AddressOf("MPIR_F08_MPI_BOTTOM")),
        (StatusIgnore, Sentinel::AddressOf("MPIR_F08_MPI_STATUS_IGNORE_OBJ")),
        (StatusesIgnore, Sentinel::AddressOf("MPIR_F08_MPI_STATUSES_IGNORE_OBJ")),
        (ErrcodesIgnore, Sentinel::AddressOf("__mpi_f08_link_constants_MOD_mpi_errcodes_ignore")),
        (Unweighted, Sentinel::AddressOf("__mpi_f08_link_constants_MOD_mpi_unweighted")),
        (WeightsEmpty, Sentinel::AddressOf("__mpi_f08_link_constants_MOD_mpi_weights_empty")),
        (ArgvNull, Sentinel::AddressOf("__mpi_f08_link_constants_MOD_mpi_argv_null")),
        (ArgvsNull, Sentinel::AddressOf("__mpi_f08_link_constants_MOD_mpi_argvs_null")),
    ],
    predefined: &[
        (Comm, "MPI_COMM_NULL", Word(0x0400_0000)),
        (Comm, "MPI_COMM_SELF", Word(0x4400_0001)),
        (Comm, "MPI_COMM_WORLD", Word(0x4400_0000)),
        (Type, "MPIX_BFLOAT16", Word(0x4c00_024c)),
        (Type, "MPIX_C_FLOAT16", Word(0x4c00_0246)),
        (Type, "MPI_2DOUBLE_PRECISION", Word(0x4c00_1023)),
        (Type, "MPI_2INT", Word(0x4c00_0816)),
        (Type, "MPI_2INTEGER", Word(0x4c00_0820)),
        (Type, "MPI_2REAL", Word(0x4c00_0821)),
        (Type, "MPI_AINT", Word(0x4c00_0843)),
        (Type, "MPI_BYTE", Word(0x4c00_010d)),
        (Type, "MPI_CHAR", Word(0x4c00_0101)),
        (Type, "MPI_CHARACTER", Word(0x4c00_011a)),
        (Type, "MPI_COMPLEX", Word(0x4c00_081e)),
        (Type, "MPI_COMPLEX16", Word(0x4c00_102a)),
        (Type, "MPI_COMPLEX32", Word(0x4c00_202c)),
        (Type, "MPI_COMPLEX4", Word(0x4c00_042e)),
        (Type, "MPI_COMPLEX8", Word(0x4c00_0828)),
        (Type, "MPI_COUNT", Word(0x4c00_0845)),
        (Type, "MPI_CXX_BOOL", Word(0x4c00_0133)),
        (Type, "MPI_CXX_DOUBLE_COMPLEX", Word(0x4c00_1035)),
        (Type, "MPI_CXX_FLOAT_COMPLEX", Word(0x4c00_0834)),
        (Type, "MPI_CXX_LONG_DOUBLE_COMPLEX", Word(0x4c00_2036)),
        (Type, "MPI_C_BOOL", Word(0x4c00_013f)),
        (Type, "MPI_C_DOUBLE_COMPLEX", Word(0x4c00_1041)),
        (Type, "MPI_C_FLOAT_COMPLEX", Word(0x4c00_0840)),
        (Type, "MPI_C_LONG_DOUBLE_COMPLEX", Word(0x4c00_2042)),
        (Type, "MPI_DATATYPE_NULL", Word(0x0c00_0000)),
        (Type, "MPI_DOUBLE", Word(0x4c00_080b)),
        (Type, "MPI_DOUBLE_COMPLEX", Word(0x4c00_1022)),
        (Type, "MPI_DOUBLE_INT", Word(0x8c00_0001)),
        (Type, "MPI_DOUBLE_PRECISION", Word(0x4c00_081f)),
        (Type, "MPI_FLOAT", Word(0x4c00_040a)),
        (Type, "MPI_FLOAT_INT", Word(0x8c00_0000)),
        (Type, "MPI_INT", Word(0x4c00_0405)),
        (Type, "MPI_INT16_T", Word(0x4c00_0238)),
        (Type, "MPI_INT32_T", Word(0x4c00_0439)),
        (Type, "MPI_INT64_T", Word(0x4c00_083a)),
        (Type, "MPI_INT8_T", Word(0x4c00_0137)),
        (Type, "MPI_INTEGER", Word(0x4c00_041b)),
        (Type, "MPI_INTEGER1", Word(0x4c00_012d)),
        (Type, "MPI_INTEGER16", Word(0x4c00_1032)),
        (Type, "MPI_INTEGER2", Word(0x4c00_022f)),
        (Type, "MPI_INTEGER4", Word(0x4c00_0430)),
        (Type, "MPI_INTEGER8", Word(0x4c00_0831)),
        (Type, "MPI_LB", Word(0x4c00_0010)),
        (Type, "MPI_LOGICAL", Word(0x4c00_041d)),
        (Type, "MPI_LOGICAL1", Word(0x4c00_0147)),
        (Type, "MPI_LOGICAL16", Word(0x4c00_104b)),
        (Type, "MPI_LOGICAL2", Word(0x4c00_0248)),
        (Type, "MPI_LOGICAL4", Word(0x4c00_0449)),
        (Type, "MPI_LOGICAL8", Word(0x4c00_084a)),
        (Type, "MPI_LONG", Word(0x4c00_0807)),
        (Type, "MPI_LONG_DOUBLE", Word(0x4c00_100c)),
        (Type, "MPI_LONG_DOUBLE_INT", Word(0x8c00_0004)),
        (Type, "MPI_LONG_INT", Word(0x8c00_0002)),
        (Type, "MPI_LONG_LONG", Word(0x4c00_0809)),
        (Type, "MPI_OFFSET", Word(0x4c00_0844)),
        (Type, "MPI_PACKED", Word(0x4c00_010f)),
        (Type, "MPI_REAL", Word(0x4c00_041c)),
        (Type, "MPI_REAL16", Word(0x4c00_102b)),
        (Type, "MPI_REAL2", Word(0x4c00_0226)),
        (Type, "MPI_REAL4", Word(0x4c00_0427)),
        (Type, "MPI_REAL8", Word(0x4c00_0829)),
        (Type, "MPI_SHORT", Word(0x4c00_0203)),
        (Type, "MPI_SHORT_INT", Word(0x8c00_0003)),
        (Type, "MPI_SIGNED_CHAR", Word(0x4c00_0118)),
        (Type, "MPI_UB", Word(0x4c00_0011)),
        (Type, "MPI_UINT16_T", Word(0x4c00_023c)),
        (Type, "MPI_UINT32_T", Word(0x4c00_043d)),
        (Type, "MPI_UINT64_T", Word(0x4c00_083e)),
        (Type, "MPI_UINT8_T", Word(0x4c00_013b)),
        (Type, "MPI_UNSIGNED", Word(0x4c00_0406)),
        (Type, "MPI_UNSIGNED_CHAR", Word(0x4c00_0102)),
        (Type, "MPI_UNSIGNED_LONG", Word(0x4c00_0808)),
        (Type, "MPI_UNSIGNED_LONG_LONG", Word(0x4c00_0819)),
        (Type, "MPI_UNSIGNED_SHORT", Word(0x4c00_0204)),
        (Type, "MPI_WCHAR", Word(0x4c00_040e)),
        (Op, "MPIX_EQUAL", Word(0x5800_000f)),
        (Op, "MPI_BAND", Word(0x5800_0006)),
        (Op, "MPI_BOR", Word(0x5800_0008)),
        (Op, "MPI_BXOR", Word(0x5800_000a)),
        (Op, "MPI_LAND", Word(0x5800_0005)),
        (Op, "MPI_LOR", Word(0x5800_0007)),
        (Op, "MPI_LXOR", Word(0x5800_0009)),
        (Op, "MPI_MAX", Word(0x5800_0001)),
        (Op, "MPI_MAXLOC", Word(0x5800_000c)),
        (Op, "MPI_MIN", Word(0x5800_0002)),
        (Op, "MPI_MINLOC", Word(0x5800_000b)),
        (Op, "MPI_NO_OP", Word(0x5800_000e)),
        (Op, "MPI_OP_NULL", Word(0x1800_0000)),
        (Op, "MPI_PROD", Word(0x5800_0004)),
        (Op, "MPI_REPLACE", Word(0x5800_000d)),
        (Op, "MPI_SUM", Word(0x5800_0003)),
        (Group, "MPI_GROUP_EMPTY", Word(0x4800_0000)),
        (Group, "MPI_GROUP_NULL", Word(0x0800_0000)),
        (Info, "MPI_INFO_ENV", Word(0x5c00_0001)),
        (Info, "MPI_INFO_NULL", Word(0x1c00_0000)),
        (Errhandler, "MPI_ERRHANDLER_NULL", Word(0x1400_0000)),
        (Errhandler, "MPI_ERRORS_ABORT", Word(0x5400_0003)),
        (Errhandler, "MPI_ERRORS_ARE_FATAL", Word(0x5400_0000)),
        (Errhandler, "MPI_ERRORS_RETURN", Word(0x5400_0001)),
        (File, "MPI_FILE_NULL", Word(0)),
        (Win, "MPI_WIN_NULL", Word(0x2000_0000)),
        (Message, "MPI_MESSAGE_NO_PROC", Word(0x6c00_0000)),
        (Message, "MPI_MESSAGE_NULL", Word(0x2c00_0000)),
        (Session, "MPI_SESSION_NULL", Word(0x3800_0000)),
        (Request, "MPI_REQUEST_NULL", Word(0x2c00_0000)),
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
        assert_eq!(ABI.find(Comm, "MPI_COMM_WORLD"), Some(Word(0x4400_0000)));
        assert_eq!(ABI.find(Type, "MPI_DOUBLE"), Some(Word(0x4c00_080b)));
        assert_eq!(ABI.find(File, "MPI_FILE_NULL"), Some(Word(0)));
    }
}
