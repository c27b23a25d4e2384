//! Open MPI: handles are addresses of the library's own variables.

use super::data::{Abi, FortranSentinel::*, Predefined::*, Sentinel};
use ampl_core::mpi::Kind;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::value::ObjectKind::*;

/// The ABI of Open MPI.
///
/// Source: `mpi.h` of Open MPI 4.1.4. `MPI_ERRORS_ABORT` and `MPI_SESSION_NULL` exist from version 5 on;
/// a symbol that the loaded library lacks is no predefined handle.
pub(crate) static ABI: Abi = Abi {
    family: AbiFamily::OpenMpi,
    handle_bytes: 8,
    status_bytes: 24,
    status_source_offset: 0,
    status_tag_offset: 4,
    status_error_offset: 8,
    any_source: -1,
    any_tag: -1,
    proc_null: -2,
    root: -4,
    undefined: -32766,
    cart: 1,
    graph: 2,
    dist_graph: 3,
    thread_serialized: 2,
    error_truncate: 15,
    error_in_status: 18,
    error_pending: 19,
    error_class_mask: !0,
    number_keys: &[
        (0, Kind::Int),  // MPI_TAG_UB
        (1, Kind::Int),  // MPI_HOST
        (2, Kind::Int),  // MPI_IO
        (3, Kind::Int),  // MPI_WTIME_IS_GLOBAL
        (4, Kind::Int),  // MPI_APPNUM
        (5, Kind::Int),  // MPI_LASTUSEDCODE
        (6, Kind::Int),  // MPI_UNIVERSE_SIZE
        (8, Kind::Aint), // MPI_WIN_SIZE
        (9, Kind::Int),  // MPI_WIN_DISP_UNIT
        (10, Kind::Int), // MPI_WIN_CREATE_FLAVOR
        (11, Kind::Int), // MPI_WIN_MODEL
    ],
    in_place: 1,
    bottom: 0,
    status_ignore: 0,
    statuses_ignore: 0,
    errcodes_ignore: 0,
    buffer_automatic: None,
    unweighted: Sentinel::Word(2),
    weights_empty: Sentinel::Word(3),
    fortran: &[
        (InPlace, Sentinel::AddressOf("mpi_fortran_in_place_")),
        (Bottom, Sentinel::AddressOf("mpi_fortran_bottom_")),
        (StatusIgnore, Sentinel::AddressOf("mpi_fortran_status_ignore_")),
        (StatusesIgnore, Sentinel::AddressOf("mpi_fortran_statuses_ignore_")),
        (ErrcodesIgnore, Sentinel::AddressOf("mpi_fortran_errcodes_ignore_")),
        (Unweighted, Sentinel::AddressOf("mpi_fortran_unweighted_")),
        (WeightsEmpty, Sentinel::AddressOf("mpi_fortran_weights_empty_")),
        (ArgvNull, Sentinel::AddressOf("mpi_fortran_argv_null_")),
        (ArgvsNull, Sentinel::AddressOf("mpi_fortran_argvs_null_")),
    ],
    predefined: &[
        (Comm, "MPI_COMM_NULL", Symbol("ompi_mpi_comm_null")),
        (Comm, "MPI_COMM_SELF", Symbol("ompi_mpi_comm_self")),
        (Comm, "MPI_COMM_WORLD", Symbol("ompi_mpi_comm_world")),
        (Type, "MPI_2COMPLEX", Symbol("ompi_mpi_2cplex")),
        (Type, "MPI_2DOUBLE_COMPLEX", Symbol("ompi_mpi_2dblcplex")),
        (Type, "MPI_2DOUBLE_PRECISION", Symbol("ompi_mpi_2dblprec")),
        (Type, "MPI_2INT", Symbol("ompi_mpi_2int")),
        (Type, "MPI_2INTEGER", Symbol("ompi_mpi_2integer")),
        (Type, "MPI_2REAL", Symbol("ompi_mpi_2real")),
        (Type, "MPI_AINT", Symbol("ompi_mpi_aint")),
        (Type, "MPI_BYTE", Symbol("ompi_mpi_byte")),
        (Type, "MPI_CHAR", Symbol("ompi_mpi_char")),
        (Type, "MPI_CHARACTER", Symbol("ompi_mpi_character")),
        (Type, "MPI_COMPLEX", Symbol("ompi_mpi_cplex")),
        (Type, "MPI_COMPLEX16", Symbol("ompi_mpi_complex16")),
        (Type, "MPI_COMPLEX32", Symbol("ompi_mpi_complex32")),
        (Type, "MPI_COMPLEX8", Symbol("ompi_mpi_complex8")),
        (Type, "MPI_COUNT", Symbol("ompi_mpi_count")),
        (Type, "MPI_CXX_BOOL", Symbol("ompi_mpi_cxx_bool")),
        (Type, "MPI_CXX_DOUBLE_COMPLEX", Symbol("ompi_mpi_cxx_dblcplex")),
        (Type, "MPI_CXX_FLOAT_COMPLEX", Symbol("ompi_mpi_cxx_cplex")),
        (Type, "MPI_CXX_LONG_DOUBLE_COMPLEX", Symbol("ompi_mpi_cxx_ldblcplex")),
        (Type, "MPI_C_BOOL", Symbol("ompi_mpi_c_bool")),
        (Type, "MPI_C_DOUBLE_COMPLEX", Symbol("ompi_mpi_c_double_complex")),
        (Type, "MPI_C_FLOAT_COMPLEX", Symbol("ompi_mpi_c_float_complex")),
        (Type, "MPI_C_LONG_DOUBLE_COMPLEX", Symbol("ompi_mpi_c_long_double_complex")),
        (Type, "MPI_DATATYPE_NULL", Symbol("ompi_mpi_datatype_null")),
        (Type, "MPI_DOUBLE", Symbol("ompi_mpi_double")),
        (Type, "MPI_DOUBLE_COMPLEX", Symbol("ompi_mpi_dblcplex")),
        (Type, "MPI_DOUBLE_INT", Symbol("ompi_mpi_double_int")),
        (Type, "MPI_DOUBLE_PRECISION", Symbol("ompi_mpi_dblprec")),
        (Type, "MPI_FLOAT", Symbol("ompi_mpi_float")),
        (Type, "MPI_FLOAT_INT", Symbol("ompi_mpi_float_int")),
        (Type, "MPI_INT", Symbol("ompi_mpi_int")),
        (Type, "MPI_INT16_T", Symbol("ompi_mpi_int16_t")),
        (Type, "MPI_INT32_T", Symbol("ompi_mpi_int32_t")),
        (Type, "MPI_INT64_T", Symbol("ompi_mpi_int64_t")),
        (Type, "MPI_INT8_T", Symbol("ompi_mpi_int8_t")),
        (Type, "MPI_INTEGER", Symbol("ompi_mpi_integer")),
        (Type, "MPI_INTEGER1", Symbol("ompi_mpi_integer1")),
        (Type, "MPI_INTEGER16", Symbol("ompi_mpi_integer16")),
        (Type, "MPI_INTEGER2", Symbol("ompi_mpi_integer2")),
        (Type, "MPI_INTEGER4", Symbol("ompi_mpi_integer4")),
        (Type, "MPI_INTEGER8", Symbol("ompi_mpi_integer8")),
        (Type, "MPI_LB", Symbol("ompi_mpi_lb")),
        (Type, "MPI_LOGICAL", Symbol("ompi_mpi_logical")),
        (Type, "MPI_LOGICAL1", Symbol("ompi_mpi_logical1")),
        (Type, "MPI_LOGICAL2", Symbol("ompi_mpi_logical2")),
        (Type, "MPI_LOGICAL4", Symbol("ompi_mpi_logical4")),
        (Type, "MPI_LOGICAL8", Symbol("ompi_mpi_logical8")),
        (Type, "MPI_LONG", Symbol("ompi_mpi_long")),
        (Type, "MPI_LONG_DOUBLE", Symbol("ompi_mpi_long_double")),
        (Type, "MPI_LONG_DOUBLE_INT", Symbol("ompi_mpi_longdbl_int")),
        (Type, "MPI_LONG_INT", Symbol("ompi_mpi_long_int")),
        (Type, "MPI_LONG_LONG", Symbol("ompi_mpi_long_long_int")),
        (Type, "MPI_OFFSET", Symbol("ompi_mpi_offset")),
        (Type, "MPI_PACKED", Symbol("ompi_mpi_packed")),
        (Type, "MPI_REAL", Symbol("ompi_mpi_real")),
        (Type, "MPI_REAL16", Symbol("ompi_mpi_real16")),
        (Type, "MPI_REAL2", Symbol("ompi_mpi_real2")),
        (Type, "MPI_REAL4", Symbol("ompi_mpi_real4")),
        (Type, "MPI_REAL8", Symbol("ompi_mpi_real8")),
        (Type, "MPI_SHORT", Symbol("ompi_mpi_short")),
        (Type, "MPI_SHORT_INT", Symbol("ompi_mpi_short_int")),
        (Type, "MPI_SIGNED_CHAR", Symbol("ompi_mpi_signed_char")),
        (Type, "MPI_UB", Symbol("ompi_mpi_ub")),
        (Type, "MPI_UINT16_T", Symbol("ompi_mpi_uint16_t")),
        (Type, "MPI_UINT32_T", Symbol("ompi_mpi_uint32_t")),
        (Type, "MPI_UINT64_T", Symbol("ompi_mpi_uint64_t")),
        (Type, "MPI_UINT8_T", Symbol("ompi_mpi_uint8_t")),
        (Type, "MPI_UNSIGNED", Symbol("ompi_mpi_unsigned")),
        (Type, "MPI_UNSIGNED_CHAR", Symbol("ompi_mpi_unsigned_char")),
        (Type, "MPI_UNSIGNED_LONG", Symbol("ompi_mpi_unsigned_long")),
        (Type, "MPI_UNSIGNED_LONG_LONG", Symbol("ompi_mpi_unsigned_long_long")),
        (Type, "MPI_UNSIGNED_SHORT", Symbol("ompi_mpi_unsigned_short")),
        (Type, "MPI_WCHAR", Symbol("ompi_mpi_wchar")),
        (Op, "MPI_BAND", Symbol("ompi_mpi_op_band")),
        (Op, "MPI_BOR", Symbol("ompi_mpi_op_bor")),
        (Op, "MPI_BXOR", Symbol("ompi_mpi_op_bxor")),
        (Op, "MPI_LAND", Symbol("ompi_mpi_op_land")),
        (Op, "MPI_LOR", Symbol("ompi_mpi_op_lor")),
        (Op, "MPI_LXOR", Symbol("ompi_mpi_op_lxor")),
        (Op, "MPI_MAX", Symbol("ompi_mpi_op_max")),
        (Op, "MPI_MAXLOC", Symbol("ompi_mpi_op_maxloc")),
        (Op, "MPI_MIN", Symbol("ompi_mpi_op_min")),
        (Op, "MPI_MINLOC", Symbol("ompi_mpi_op_minloc")),
        (Op, "MPI_NO_OP", Symbol("ompi_mpi_op_no_op")),
        (Op, "MPI_OP_NULL", Symbol("ompi_mpi_op_null")),
        (Op, "MPI_PROD", Symbol("ompi_mpi_op_prod")),
        (Op, "MPI_REPLACE", Symbol("ompi_mpi_op_replace")),
        (Op, "MPI_SUM", Symbol("ompi_mpi_op_sum")),
        (Group, "MPI_GROUP_EMPTY", Symbol("ompi_mpi_group_empty")),
        (Group, "MPI_GROUP_NULL", Symbol("ompi_mpi_group_null")),
        (Info, "MPI_INFO_ENV", Symbol("ompi_mpi_info_env")),
        (Info, "MPI_INFO_NULL", Symbol("ompi_mpi_info_null")),
        (Errhandler, "MPI_ERRHANDLER_NULL", Symbol("ompi_mpi_errhandler_null")),
        (Errhandler, "MPI_ERRORS_ABORT", Symbol("ompi_mpi_errors_abort")),
        (Errhandler, "MPI_ERRORS_ARE_FATAL", Symbol("ompi_mpi_errors_are_fatal")),
        (Errhandler, "MPI_ERRORS_RETURN", Symbol("ompi_mpi_errors_return")),
        (File, "MPI_FILE_NULL", Symbol("ompi_mpi_file_null")),
        (Win, "MPI_WIN_NULL", Symbol("ompi_mpi_win_null")),
        (Message, "MPI_MESSAGE_NO_PROC", Symbol("ompi_message_no_proc")),
        (Message, "MPI_MESSAGE_NULL", Symbol("ompi_message_null")),
        (Session, "MPI_SESSION_NULL", Symbol("ompi_mpi_instance_null")),
        (Request, "MPI_REQUEST_NULL", Symbol("ompi_request_null")),
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
        assert_eq!(ABI.find(Comm, "MPI_COMM_WORLD"), Some(Symbol("ompi_mpi_comm_world")));
        assert_eq!(ABI.find(Request, "MPI_REQUEST_NULL"), Some(Symbol("ompi_request_null")));
        assert_eq!(ABI.find(Type, "MPI_DOUBLE_PRECISION"), Some(Symbol("ompi_mpi_dblprec")));
    }
}
