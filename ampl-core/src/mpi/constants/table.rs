//! Values of MPI's integer constants under each binary interface.
//!
//! Source: `mpi.h` of Open MPI 4.1.4 (constants of MPI-4 as in 5.0), `mpi.h` of MPICH 5.0.2, which 4.0.2 agrees with, and
//! `mpi_abi.h`, which MPI-5.0 chapter 20 prescribes. `-` stands where the interface has no such constant.

use super::Set::{self, *};

/// A constant's set, its name, and its value under Open MPI, MPICH and the standard's ABI.
pub(super) type Row = (Set, &'static str, [Option<i32>; 3]);

macro_rules! value {
    (-) => {
        None
    };
    ($value:tt) => {
        Some($value)
    };
}

macro_rules! table {
    ($($set:ident $name:ident $open:tt $mpich:tt $standard:tt)*) => {
        &[$(($set, stringify!($name), [value!($open), value!($mpich), value!($standard)]),)*]
    };
}

/// All of them, set by set; of two names of one value under an interface the first is printed.
#[rustfmt::skip] // One constant a line.
pub(super) static TABLE: &[Row] = table! {
    SplitType MPI_COMM_TYPE_SHARED 0 1 221
    SplitType MPI_COMM_TYPE_HW_UNGUIDED 12 3 222
    SplitType MPI_COMM_TYPE_HW_GUIDED 13 2 223
    SplitType MPI_COMM_TYPE_RESOURCE_GUIDED 14 4 224
    SplitType OMPI_COMM_TYPE_HWTHREAD 1 - -
    SplitType OMPI_COMM_TYPE_CORE 2 - -
    SplitType OMPI_COMM_TYPE_L1CACHE 3 - -
    SplitType OMPI_COMM_TYPE_L2CACHE 4 - -
    SplitType OMPI_COMM_TYPE_L3CACHE 5 - -
    SplitType OMPI_COMM_TYPE_SOCKET 6 - -
    SplitType OMPI_COMM_TYPE_NUMA 7 - -
    SplitType OMPI_COMM_TYPE_BOARD 8 - -
    SplitType OMPI_COMM_TYPE_HOST 9 - -
    SplitType OMPI_COMM_TYPE_CU 10 - -
    SplitType OMPI_COMM_TYPE_CLUSTER 11 - -

    Comparison MPI_IDENT 0 0 201
    Comparison MPI_CONGRUENT 1 1 202
    Comparison MPI_SIMILAR 2 2 203
    Comparison MPI_UNEQUAL 3 3 204

    Topology MPI_GRAPH 2 1 212
    Topology MPI_CART 1 2 211
    Topology MPI_DIST_GRAPH 3 3 213

    WindowAssert MPI_MODE_NOCHECK 1 1024 1024
    WindowAssert MPI_MODE_NOSTORE 8 2048 8192
    WindowAssert MPI_MODE_NOPUT 4 4096 4096
    WindowAssert MPI_MODE_NOPRECEDE 2 8192 2048
    WindowAssert MPI_MODE_NOSUCCEED 16 16384 16384

    FileMode MPI_MODE_CREATE 1 1 2
    FileMode MPI_MODE_RDONLY 2 2 16
    FileMode MPI_MODE_WRONLY 4 4 256
    FileMode MPI_MODE_RDWR 8 8 32
    FileMode MPI_MODE_DELETE_ON_CLOSE 16 16 4
    FileMode MPI_MODE_UNIQUE_OPEN 32 32 128
    FileMode MPI_MODE_EXCL 64 64 8
    FileMode MPI_MODE_APPEND 128 128 1
    FileMode MPI_MODE_SEQUENTIAL 256 256 64

    Seek MPI_SEEK_SET 600 600 403
    Seek MPI_SEEK_CUR 602 602 401
    Seek MPI_SEEK_END 604 604 402

    LockType MPI_LOCK_EXCLUSIVE 1 234 301
    LockType MPI_LOCK_SHARED 2 235 302

    Combiner MPI_COMBINER_CONTIGUOUS 2 3 103
    Combiner MPI_COMBINER_DARRAY 13 14 112
    Combiner MPI_COMBINER_DUP 1 2 102
    Combiner MPI_COMBINER_F90_COMPLEX 15 16 114
    Combiner MPI_COMBINER_F90_INTEGER 16 17 115
    Combiner MPI_COMBINER_F90_REAL 14 15 113
    Combiner MPI_COMBINER_HINDEXED 8 9 107
    Combiner MPI_COMBINER_HINDEXED_BLOCK 18 19 109
    Combiner MPI_COMBINER_HINDEXED_INTEGER - 8 -
    Combiner MPI_COMBINER_HVECTOR 5 6 105
    Combiner MPI_COMBINER_HVECTOR_INTEGER - 5 -
    Combiner MPI_COMBINER_INDEXED 6 7 106
    Combiner MPI_COMBINER_INDEXED_BLOCK 9 10 108
    Combiner MPI_COMBINER_NAMED 0 1 101
    Combiner MPI_COMBINER_RESIZED 17 18 116
    Combiner MPI_COMBINER_STRUCT 11 12 110
    Combiner MPI_COMBINER_STRUCT_INTEGER - 11 -
    Combiner MPI_COMBINER_SUBARRAY 12 13 111
    Combiner MPI_COMBINER_VALUE_INDEX 19 20 117
    Combiner MPI_COMBINER_VECTOR 3 4 104

    TypeClass MPI_TYPECLASS_COMPLEX 3 3 194
    TypeClass MPI_TYPECLASS_INTEGER 1 2 192
    TypeClass MPI_TYPECLASS_REAL 2 1 193

    Order MPI_ORDER_C 0 56 12
    Order MPI_ORDER_FORTRAN 1 57 15

    Distribution MPI_DISTRIBUTE_BLOCK 0 121 17
    Distribution MPI_DISTRIBUTE_CYCLIC 1 122 18
    Distribution MPI_DISTRIBUTE_DFLT_DARG (-1) (-49767) 19
    Distribution MPI_DISTRIBUTE_NONE 2 123 16

    ThreadLevel MPI_THREAD_FUNNELED 1 1 1024
    ThreadLevel MPI_THREAD_MULTIPLE 3 3 4096
    ThreadLevel MPI_THREAD_SERIALIZED 2 2 2048
    ThreadLevel MPI_THREAD_SINGLE 0 0 0

    WindowFlavor MPI_WIN_FLAVOR_ALLOCATE 2 2 312
    WindowFlavor MPI_WIN_FLAVOR_CREATE 1 1 311
    WindowFlavor MPI_WIN_FLAVOR_DYNAMIC 3 3 313
    WindowFlavor MPI_WIN_FLAVOR_SHARED 4 4 314

    WindowModel MPI_WIN_SEPARATE 1 1 322
    WindowModel MPI_WIN_UNIFIED 0 2 321

    Keyval MPI_TAG_UB 0 1681915905 501
    Keyval MPI_HOST 1 1681915907 503
    Keyval MPI_IO 2 1681915909 502
    Keyval MPI_WTIME_IS_GLOBAL 3 1681915911 504
    Keyval MPI_APPNUM 4 1681915917 505
    Keyval MPI_LASTUSEDCODE 5 1681915915 506
    Keyval MPI_UNIVERSE_SIZE 6 1681915913 507
    Keyval MPI_WIN_BASE 7 1711276033 601
    Keyval MPI_WIN_SIZE 8 1711276035 603
    Keyval MPI_WIN_DISP_UNIT 9 1711276037 602
    Keyval MPI_WIN_CREATE_FLAVOR 10 1711276039 604
    Keyval MPI_WIN_MODEL 11 1711276041 605
    Keyval MPI_KEYVAL_INVALID (-1) 603979776 0

    ErrorClass MPI_SUCCESS 0 0 0
    ErrorClass MPI_ERR_ABI - 81 62
    ErrorClass MPI_ERR_ACCESS 20 20 20
    ErrorClass MPI_ERR_AMODE 21 21 21
    ErrorClass MPI_ERR_ARG 13 12 13
    ErrorClass MPI_ERR_ASSERT 22 53 22
    ErrorClass MPI_ERR_BAD_FILE 23 22 23
    ErrorClass MPI_ERR_BASE 24 46 24
    ErrorClass MPI_ERR_BUFFER 1 1 1
    ErrorClass MPI_ERR_COMM 5 5 5
    ErrorClass MPI_ERR_CONVERSION 25 23 25
    ErrorClass MPI_ERR_COUNT 2 2 2
    ErrorClass MPI_ERR_DIMS 12 11 12
    ErrorClass MPI_ERR_DISP 26 52 26
    ErrorClass MPI_ERR_DUP_DATAREP 27 24 27
    ErrorClass MPI_ERR_ERRHANDLER - 80 61
    ErrorClass MPI_ERR_FILE 30 27 30
    ErrorClass MPI_ERR_FILE_EXISTS 28 25 28
    ErrorClass MPI_ERR_FILE_IN_USE 29 26 29
    ErrorClass MPI_ERR_GROUP 9 8 9
    ErrorClass MPI_ERR_INFO 34 28 34
    ErrorClass MPI_ERR_INFO_KEY 31 29 31
    ErrorClass MPI_ERR_INFO_NOKEY 32 31 32
    ErrorClass MPI_ERR_INFO_VALUE 33 30 33
    ErrorClass MPI_ERR_INTERN 17 16 17
    ErrorClass MPI_ERR_IN_STATUS 18 17 19
    ErrorClass MPI_ERR_IO 35 32 35
    ErrorClass MPI_ERR_KEYVAL 36 48 36
    ErrorClass MPI_ERR_LOCKTYPE 37 47 37
    ErrorClass MPI_ERR_NAME 38 33 38
    ErrorClass MPI_ERR_NOT_SAME 40 35 40
    ErrorClass MPI_ERR_NO_MEM 39 34 39
    ErrorClass MPI_ERR_NO_SPACE 41 36 41
    ErrorClass MPI_ERR_NO_SUCH_FILE 42 37 42
    ErrorClass MPI_ERR_OP 10 9 10
    ErrorClass MPI_ERR_OTHER 16 15 16
    ErrorClass MPI_ERR_PENDING 19 18 18
    ErrorClass MPI_ERR_PORT 43 38 43
    ErrorClass MPI_ERR_PROC_ABORTED - 76 58
    ErrorClass MPI_ERR_QUOTA 44 39 44
    ErrorClass MPI_ERR_RANK 6 6 6
    ErrorClass MPI_ERR_READ_ONLY 45 40 45
    ErrorClass MPI_ERR_REQUEST 7 19 7
    ErrorClass MPI_ERR_RMA_ATTACH 69 56 46
    ErrorClass MPI_ERR_RMA_CONFLICT 46 49 47
    ErrorClass MPI_ERR_RMA_FLAVOR 70 58 57
    ErrorClass MPI_ERR_RMA_RANGE 68 55 48
    ErrorClass MPI_ERR_RMA_SHARED 71 57 49
    ErrorClass MPI_ERR_RMA_SYNC 47 50 50
    ErrorClass MPI_ERR_ROOT 8 7 8
    ErrorClass MPI_ERR_SERVICE 48 41 51
    ErrorClass MPI_ERR_SESSION - 75 60
    ErrorClass MPI_ERR_SIZE 49 51 52
    ErrorClass MPI_ERR_SPAWN 50 42 53
    ErrorClass MPI_ERR_TAG 4 4 4
    ErrorClass MPI_ERR_TOPOLOGY 11 10 11
    ErrorClass MPI_ERR_TRUNCATE 15 14 15
    ErrorClass MPI_ERR_TYPE 3 3 3
    ErrorClass MPI_ERR_UNKNOWN 14 13 14
    ErrorClass MPI_ERR_UNSUPPORTED_DATAREP 51 43 54
    ErrorClass MPI_ERR_UNSUPPORTED_OPERATION 52 44 55
    ErrorClass MPI_ERR_VALUE_TOO_LARGE - 77 59
    ErrorClass MPI_ERR_WIN 53 45 56
    ErrorClass MPI_T_ERR_CANNOT_INIT 56 61 1001
    ErrorClass MPI_T_ERR_CVAR_SET_NEVER 64 69 1015
    ErrorClass MPI_T_ERR_CVAR_SET_NOT_NOW 63 68 1014
    ErrorClass MPI_T_ERR_INVALID 72 74 1006
    ErrorClass MPI_T_ERR_INVALID_HANDLE 59 64 1010
    ErrorClass MPI_T_ERR_INVALID_INDEX 57 62 1007
    ErrorClass MPI_T_ERR_INVALID_ITEM 58 63 1008
    ErrorClass MPI_T_ERR_INVALID_NAME 73 73 1011
    ErrorClass MPI_T_ERR_INVALID_SESSION 62 67 1009
    ErrorClass MPI_T_ERR_MEMORY 54 59 1005
    ErrorClass MPI_T_ERR_NOT_ACCESSIBLE - 79 1002
    ErrorClass MPI_T_ERR_NOT_INITIALIZED 55 60 1003
    ErrorClass MPI_T_ERR_NOT_SUPPORTED - 78 1004
    ErrorClass MPI_T_ERR_OUT_OF_HANDLES 60 65 1012
    ErrorClass MPI_T_ERR_OUT_OF_SESSIONS 61 66 1013
    ErrorClass MPI_T_ERR_PVAR_NO_ATOMIC 67 72 1018
    ErrorClass MPI_T_ERR_PVAR_NO_STARTSTOP 65 70 1017
    ErrorClass MPI_T_ERR_PVAR_NO_WRITE 66 71 1016

    Special MPI_UNDEFINED (-32766) (-32766) (-32766)
    Special MPI_ANY_SOURCE (-1) (-2) (-1)
    Special MPI_ANY_TAG (-1) (-1) (-2)
    Special MPI_PROC_NULL (-2) (-1) (-3)
    Special MPI_ROOT (-4) (-3) (-4)
    Special MPI_DISPLACEMENT_CURRENT (-54278278) (-54278278) (-1)
};
