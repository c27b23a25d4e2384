//! The MPI functions that ampl itself calls, by their profiling names.

use crate::symbol::next_definition;

macro_rules! word {
    ($argument:ident) => {
        usize
    };
}

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $name:literal ($($argument:ident)*);)*) => {
        /// Resolved functions of the loaded MPI library. Each returns an error code.
        #[derive(Debug)]
        pub struct Pmpi {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($(word!($argument)),*) -> i32,)*
        }

        impl Pmpi {
            /// All of them; `None` if the library lacks one.
            pub fn load() -> Option<Self> {
                Some(Self {
                    $($field: {
                        let address = next_definition(concat!("PMPI_", $name, "\0"));
                        if address.is_null() {
                            return None;
                        }
                        // SAFETY: the standard's function of that name, whose arguments are words.
                        unsafe {
                            std::mem::transmute::<*const (), unsafe extern "C" fn($(word!($argument)),*) -> i32>(
                                address,
                            )
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// `(comm, *size)`
    comm_size = "Comm_size" (comm size);
    /// `(comm, *rank)`
    comm_rank = "Comm_rank" (comm rank);
    /// `(comm, *flag)`
    comm_test_inter = "Comm_test_inter" (comm flag);
    /// `(comm, *size)`
    comm_remote_size = "Comm_remote_size" (comm size);
    /// `(comm, *new)`
    comm_dup = "Comm_dup" (comm new);
    /// `(comm, *group)`
    comm_group = "Comm_group" (comm group);
    /// `(comm, group, tag, *new)`
    comm_create_group = "Comm_create_group" (comm group tag new);
    /// `(comm, *group)`
    comm_remote_group = "Comm_remote_group" (comm group);
    /// `(group, *size)`
    group_size = "Group_size" (group size);
    /// `(group, count, *ranks, other, *ranks)`
    group_translate_ranks = "Group_translate_ranks" (group count ranks other translated);
    /// `(*group)`
    group_free = "Group_free" (group);
    /// `(comm, errhandler)`
    comm_set_errhandler = "Comm_set_errhandler" (comm errhandler);
    /// `(copy, delete, *keyval, extra)`
    comm_create_keyval = "Comm_create_keyval" (copy delete keyval extra);
    /// `(comm, keyval, value)`
    comm_set_attr = "Comm_set_attr" (comm keyval value);
    /// `(comm, *ndims)`
    cartdim_get = "Cartdim_get" (comm ndims);
    /// `(comm, *indegree, *outdegree, *weighted)`
    dist_graph_neighbors_count = "Dist_graph_neighbors_count" (comm indegree outdegree weighted);
    /// `(comm, rank, *neighbours)`
    graph_neighbors_count = "Graph_neighbors_count" (comm rank neighbours);
    /// `(comm, *status)`
    topo_test = "Topo_test" (comm status);
    /// `(buffer, count, datatype, root, comm)`
    bcast = "Bcast" (buffer count datatype root comm);
    /// `(buffer, count, datatype, dest, tag, comm, *request)`
    issend = "Issend" (buffer count datatype dest tag comm request);
    /// `(buffer, count, datatype, source, tag, comm, *request)`
    irecv = "Irecv" (buffer count datatype source tag comm request);
    /// `(*request, *flag, *status)`
    test = "Test" (request flag status);
    /// `(buffer, count, datatype, dest, tag, comm, *request)`
    isend = "Isend" (buffer count datatype dest tag comm request);
    /// `(count, *requests, *completed, *indices, *statuses)`
    testsome = "Testsome" (count requests completed indices statuses);
    /// `(*request)`
    cancel = "Cancel" (request);
    /// `(*status, *flag)`
    test_cancelled = "Test_cancelled" (status flag);
    /// `(*request, *status)`
    wait = "Wait" (request status);
    /// `(datatype, *size)`: an `MPI_Count`.
    type_size_x = "Type_size_x" (datatype size);
    /// `(datatype, *integers, *addresses, *datatypes, *combiner)`
    type_get_envelope = "Type_get_envelope" (datatype integers addresses datatypes combiner);
    /// `(text, *length)`
    get_library_version = "Get_library_version" (text length);
    /// `(*provided)`
    query_thread = "Query_thread" (provided);
}

impl Pmpi {
    /// Version of the MPI library in its own words, first line.
    pub fn library_version(&self) -> String {
        // Longer than MPI_MAX_LIBRARY_VERSION_STRING of any implementation.
        let mut text = vec![0u8; 16384];
        let mut length = 0i32;
        // SAFETY: places for the text and its length.
        unsafe {
            (self.get_library_version)(text.as_mut_ptr() as usize, &raw mut length as usize);
        }
        let text = String::from_utf8_lossy(&text[..(length.max(0) as usize).min(text.len())]).into_owned();
        text.lines().next().unwrap_or("").trim_matches(['\0', ' ', '\t']).replace('\t', " ")
    }
}
