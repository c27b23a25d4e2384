//! Integer constants are decoded by their names under each interface.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor};
use serde_json::{Value, json};

/// Function, argument, and its values in the calls of that function, one after the other.
const NAMED: &[(&str, &str, &[&str])] = &[
    ("MPI_Init_thread", "required", &["MPI_THREAD_FUNNELED"]),
    ("MPI_Comm_split_type", "split_type", &["MPI_COMM_TYPE_SHARED"]),
    ("MPI_Comm_compare", "result", &["MPI_CONGRUENT"]),
    ("MPI_Topo_test", "status", &["MPI_CART", "MPI_UNDEFINED"]),
    ("MPI_Comm_get_attr", "comm_keyval", &["MPI_TAG_UB"]),
    ("MPI_Type_get_envelope", "combiner", &["MPI_COMBINER_VECTOR"]),
    ("MPI_Type_create_subarray", "order", &["MPI_ORDER_FORTRAN"]),
    ("MPI_Type_match_size", "typeclass", &["MPI_TYPECLASS_REAL"]),
    ("MPI_Win_get_attr", "win_keyval", &["MPI_WIN_CREATE_FLAVOR"]),
    ("MPI_Win_get_attr", "attribute_val", &["MPI_WIN_FLAVOR_CREATE"]),
    ("MPI_Win_lock", "lock_type", &["MPI_LOCK_SHARED"]),
    ("MPI_Win_lock", "assert", &["MPI_MODE_NOCHECK"]),
    ("MPI_File_seek", "whence", &["MPI_SEEK_END"]),
    ("MPI_Error_class", "errorcode", &["MPI_ERR_RANK"]),
    ("MPI_Error_class", "errorclass", &["MPI_ERR_RANK"]),
];

/// The value of that name, input or output.
fn value<'a>(call: &'a Value, name: &str) -> &'a Value {
    if call["out"][name].is_null() { &call["args"][name] } else { &call["out"][name] }
}

/// Names joined by `|`, in any order.
fn bits(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_str().unwrap_or_default().split('|').collect();
    names.sort_unstable();
    names
}

fn constants_have_names(mpi: Mpi) {
    let job = Job::of(mpi, 2, "named_constants", &[]);
    let run = monitor(&job, "[agent]\nmax_overhead = \"99%\"\n", Form::Run).success();
    for rank in 0..2 {
        let calls = run.decode(rank);
        let of = |function: &str, name: &str| -> Vec<Value> {
            let of_it = calls.iter().filter(|call| call["fn"] == function);
            of_it.map(|call| value(call, name).clone()).collect()
        };
        for &(function, name, expected) in NAMED {
            assert_eq!(of(function, name), expected, "{mpi:?}, rank {rank}: {function} {name}");
        }
        let asserts = of("MPI_Win_fence", "assert");
        assert_eq!(bits(&asserts[0]), ["MPI_MODE_NOPRECEDE", "MPI_MODE_NOPUT"]);
        assert_eq!(asserts[1..], [json!(0), json!("MPI_MODE_NOSUCCEED")]);
        let modes = of("MPI_File_open", "amode");
        let expected = ["MPI_MODE_CREATE", "MPI_MODE_DELETE_ON_CLOSE", "MPI_MODE_RDWR"];
        assert_eq!(bits(&modes[0]), expected);
        let levels = [of("MPI_Init_thread", "provided"), of("MPI_Query_thread", "provided")].concat();
        assert!(levels.iter().all(|level| bits(level)[0].starts_with("MPI_THREAD_")), "{levels:?}");
        // The program's own key and counts are numbers.
        assert!(of("MPI_Comm_create_keyval", "comm_keyval")[0].is_number());
        assert_eq!(of("MPI_Comm_free_keyval", "comm_keyval"), ["MPI_KEYVAL_INVALID"]);
        assert_eq!(of("MPI_Comm_split_type", "key"), [3]);
    }
}

#[test]
fn constants_have_names_open_mpi() {
    constants_have_names(Mpi::OpenMpi);
}

#[test]
fn constants_have_names_mpich() {
    constants_have_names(Mpi::Mpich);
}

#[test]
fn constants_have_names_standard_abi() {
    constants_have_names(Mpi::Abi);
}
