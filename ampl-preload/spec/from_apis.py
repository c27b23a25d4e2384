#!/usr/bin/env python3
"""Writes mpi.toml from the MPI standard's machine-readable interface description.

    python3 from_apis.py APIS_JSON > mpi.toml

APIS_JSON is `pympistandard/data/apis.json` from the pympistandard package (see README.md).
What that data leaves open (lengths given as `*`, what a call does to traffic and requests, the
functions that MPI-3 removed) is decided in the tables below.
"""

import json
import re
import sys

# --- Parameter kinds -------------------------------------------------------------------------

# Standard kind -> ampl kind. A pair gives the kinds of the plain and of the large-count function.
KINDS = {
    "BUFFER": "buffer", "STATUS": "status", "STRING": "string", "RANK": "rank", "RANK_NNI": "rank",
    "TAG": "tag", "COMMUNICATOR": "comm", "DATATYPE": "datatype", "ERRHANDLER": "errhandler",
    "FILE": "file", "GROUP": "group", "INFO": "info", "MESSAGE": "message", "OPERATION": "op",
    "REQUEST": "request", "SESSION": "session", "WINDOW": "win", "OFFSET": "offset",
    "LOGICAL": "logical", "LOGICAL_OPTIONAL": "logical",
    "ATTRIBUTE_VAL": "attribute", "ATTRIBUTE_VAL_10": "attribute",
    "COLOR": "int-or-undefined", "SPLIT_TYPE": "int-or-undefined", "INDEX": "int-or-undefined",
    "MATH": "int-or-undefined", "TOPOLOGY_TYPE": "int-or-undefined",
}
ADDRESSES = """ARGUMENT_COUNT ARGUMENT_LIST C_BUFFER C_BUFFER2
    CVAR EVENT_CB_FUNCTION EVENT_DROP_CB_FUNCTION EVENT_FREE_CB_FUNCTION EVENT_INSTANCE
    EVENT_REGISTRATION EXTRA_STATE EXTRA_STATE2 F08_STATUS F90_STATUS FUNCTION LOGICAL_VOID
    POLYFUNCTION PVAR PVAR_SESSION STRING_2DARRAY STRING_ARRAY TOOLS_ENUM TOOL_MPI_OBJ""".split()
AINTS = """ALLOC_MEM_NUM_BYTES DISPLACEMENT DISPLACEMENT_NNI LOCATION_SMALL RMA_DISPLACEMENT_NNI
    WINDOW_SIZE WIN_ATTACH_SIZE""".split()
COUNTS = "GENERIC_DTYPE_COUNT NUM_BYTES TOOLS_TICK_COUNT XFER_NUM_ELEM XFER_NUM_ELEM_NNI".split()
POLY = {
    "int": ("int", "count"),
    "POLYDISPLACEMENT": ("int", "aint"), "POLYRMA_DISPLACEMENT": ("int", "aint"),
    "POLYDISPLACEMENT_AINT_COUNT": ("aint", "count"), "POLYDISPOFFSET": ("aint", "count"),
    "POLYDTYPE_PACK_SIZE": ("aint", "count"), "POLYDTYPE_STRIDE_BYTES": ("aint", "count"),
    "POLYLOCATION": ("aint", "count"),
}

# (function without _c, parameter) -> kind of the plain function where its value has a meaning that
# the standard's kind does not show.
KIND_OVERRIDES = {
    **{(f, "count"): "int-or-undefined" for f in ("MPI_Get_count", "MPI_Get_elements")},
    ("MPI_Waitsome", "outcount"): "int-or-undefined",
    ("MPI_Testsome", "outcount"): "int-or-undefined",
    ("MPI_Request_get_status_some", "outcount"): "int-or-undefined",
    ("MPI_Type_size", "size"): "int-or-undefined",
    ("MPI_Pack_size", "size"): "int-or-undefined",
    ("MPI_Group_rank", "rank"): "int-or-undefined",
    ("MPI_Group_translate_ranks", "ranks2"): "int-or-undefined",
    ("MPI_Cart_map", "newrank"): "int-or-undefined",
    ("MPI_Graph_map", "newrank"): "int-or-undefined",
    ("MPI_Cart_shift", "direction"): "int",
    ("MPI_Graph_create", "index"): "int",
    ("MPI_Graph_map", "index"): "int",
    ("MPI_Graph_get", "index"): "int",
    ("MPI_T_event_read", "buffer"): "buffer",
    ("MPI_T_event_copy", "buffer"): "buffer",
    ("MPI_Info_create_env", "argc"): "int",
}


def kind_of(function, param, large):
    kind = param["kind"]
    override = KIND_OVERRIDES.get((function, param["name"]))
    if kind.startswith("POLY") and kind != "POLYFUNCTION":
        plain, big = POLY.get(kind, POLY["int"])
        return big if large else override or plain
    if override:
        return override
    if kind in ADDRESSES:
        return "address"
    if kind in AINTS:
        return "aint"
    if kind in COUNTS:
        return "count"
    # Every other kind is an int in C; check_headers.py compares with the C prototypes.
    return KINDS.get(kind, "int")


# --- Directions ------------------------------------------------------------------------------


def direction_of(function, param):
    if function == "MPI_Precv_init" and param["name"] == "buf":
        return "out"  # As MPI_Recv_init has it; the data says "in".
    if param["kind"] in ("ARGUMENT_COUNT", "ARGUMENT_LIST", "F08_STATUS", "F90_STATUS", "LOGICAL_VOID"):
        return "in"  # An address of the program's, of which only the word is of interest.
    if param["pointer"] and param["kind"] == "REQUEST":
        return "inout"  # MPI_Cancel: a pointer although nothing is written.
    return param["param_direction"]


# --- Lengths ---------------------------------------------------------------------------------

# One row per parameter: functions (regular expression over the plain name), parameter, length.
LENGTHS = [
    (r"MPI_Cart_rank", "coords", "cartdims(comm)"),
    (r"MPI_Cart_sub", "remain_dims", "cartdims(comm)"),
    (r"MPI_Dist_graph_create_adjacent", "sourceweights", "indegree"),
    (r"MPI_Dist_graph_create_adjacent", "destweights", "outdegree"),
    (r"MPI_Dist_graph_neighbors", "sourceweights", "maxindegree"),
    (r"MPI_Dist_graph_neighbors", "destweights", "maxoutdegree"),
    (r"MPI_Waitall", "array_of_statuses", "count"),
    (r"MPI_(Testall|Request_get_status_all)", "array_of_statuses", "ifflag(count,flag)"),
    (r"MPI_(Waitsome|Testsome|Request_get_status_some)", "array_of_(indices|statuses)", "outcount(outcount)"),
    # As many as the sum of `degrees`, or as the last element of `index`: not expressible.
    (r"MPI_Dist_graph_create", "destinations|weights", "unknown"),
    (r"MPI_Graph_(create|map)", "edges", "unknown"),
    # Read and written only at the root, where the length itself is only given.
    (r"MPI_Comm_spawn(_multiple)?", "array_of_.*|argv", "unknown"),
    # A name in the data of external packing: an ordinary string.
    (r"MPI_(Un)?[Pp]ack_external.*", "datarep", "one"),
    # Written as far as the buffer goes, while the length parameter then holds what it should have been.
    (r"MPI_Info_get_string", "value", "unknown"),
    (r"MPI_Session_get_nth_pset", "pset_name", "unknown"),
    # Only the root passes these.
    (r"MPI_Comm_spawn", "command", "unknown"),
    (r"MPI_Comm_(accept|connect)", "port_name", "unknown"),
    (r"MPI_Info_get", "value", "ifflag(valuelen,flag)"),
    (r"MPI_T_event_get_info", "array_of_.*", "unknown"),
    (r"MPI_T_.*", "name|desc", "unknown"),
]


def v_length(function, name):
    """Length of a per-process or per-neighbour array of a collective."""
    low = function.lower()
    if "neighbor" in low:
        receives = name.startswith("r") or (name == "displs" and "allgatherv" in low)
        return "indegree(comm)" if receives else "outdegree(comm)"
    if re.fullmatch(r"mpi_i?(gatherv|scatterv)(_init)?", low):
        return "commsize_at_root(comm,root)"
    if re.fullmatch(r"mpi_i?(allgatherv|alltoallv|alltoallw|reduce_scatter)(_init)?", low):
        return "commsize(comm)"
    return None


def length_of(function, param, params):
    name, length, kind = param["name"], param["length"], param["kind"]
    for functions, names, answer in LENGTHS:
        if re.fullmatch(functions, function) and re.fullmatch(names, name):
            # Inputs of MPI_T functions are plain strings.
            if kind == "STRING" and param["param_direction"] == "in" and function.startswith("MPI_T_"):
                return "one"
            return answer
    if kind == "STRING":
        # Output strings whose written length another parameter returns.
        if param["param_direction"] != "in" and any(p["name"] == "resultlen" for p in params):
            return "resultlen"
        return "one"
    if kind in ("STRING_ARRAY", "STRING_2DARRAY", "ARGUMENT_LIST"):
        return "one"
    if length is None:
        return "one"
    if isinstance(length, list):
        return f"times({length[0]},{length[1]})"
    if any(p["name"] == length for p in params):
        return length
    answer = v_length(function, name)
    if answer is None:
        sys.exit(f"no length for {function} {name}: {length!r}")
    return answer


# --- Classes and traffic ---------------------------------------------------------------------

COUNT_ONLY = re.compile(r"MPI_(Wtime|Wtick|Aint_add|Aint_diff|\w+_(c2f|f2c|toint|fromint|c2f08|f082c|f082f|f2f08))")
# Queries that take some nanoseconds and neither wait nor communicate.
LOCAL = re.compile(
    r"MPI_(Comm_(rank|size|remote_size|test_inter)|Group_(rank|size)|Get_count(_c)?|Get_elements(_x|_c)?"
    r"|Type_(size|get_extent|get_true_extent)(_x|_c)?|Get_address|Test_cancelled"
    r"|Status_(get|set)_\w+|Initialized|Finalized|Query_thread|Is_thread_main|Get_version"
    r"|Topo_test|Cartdim_get|Cart_(rank|coords|shift)|Error_class)"
)
COMPLETION = re.compile(r"MPI_Wait(all|any|some)?")
POLL = re.compile(r"MPI_(Test(all|any|some)?|Iprobe|Improbe|Request_get_status(_all|_any|_some)?|Parrived|Win_test)")
LIFECYCLE = re.compile(r"MPI_(Init|Init_thread|Finalize|Abort)")
PERSISTENT_P2P = re.compile(r"MPI_([BSR]?[Ss]end|Recv|Psend|Precv)_init")


def class_of(function, params):
    if COUNT_ONLY.fullmatch(function):
        return "count-only"
    if LOCAL.fullmatch(function):
        return "local"
    if COMPLETION.fullmatch(function):
        return "completion"
    if POLL.fullmatch(function):
        return "poll"
    if LIFECYCLE.fullmatch(function):
        return "lifecycle"
    if function in ("MPI_Start", "MPI_Startall"):
        return "start"
    makes_request = any(p["kind"] == "REQUEST" and p["param_direction"] == "out" for p in params)
    if not makes_request or PERSISTENT_P2P.fullmatch(function):
        return "ordinary"
    return "persistent-collective" if function.endswith("_init") else "nonblocking"


COLLECTIVES = """bcast gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv alltoallw
    reduce allreduce reduce-scatter reduce-scatter-block neighbor-allgather neighbor-allgatherv
    neighbor-alltoall neighbor-alltoallv neighbor-alltoallw""".split()


def traffic_of(function):
    low = function.lower()
    if re.fullmatch(r"mpi_i?[bsr]?send", low):
        return "send"
    if re.fullmatch(r"mpi_[bsr]?send_init", low):
        return "send-init"
    if re.fullmatch(r"mpi_i?m?recv", low):
        return "recv"
    if low == "mpi_recv_init":
        return "recv-init"
    match = re.fullmatch(r"mpi_(i?)sendrecv(_replace)?", low)
    if match:
        return "sendrecv-replace" if match.group(2) else "sendrecv"
    match = re.fullmatch(r"mpi_i?(.*?)(_init)?", low)
    operation = match.group(1).replace("_", "-")
    if operation in ("scan", "exscan"):
        return "allreduce"
    return operation if operation in COLLECTIVES else "none"


# --- Fortran ---------------------------------------------------------------------------------

# Interfaces that exist a second time for TYPE(C_PTR) arguments.
CPTR = ("MPI_Alloc_mem", "MPI_Win_allocate", "MPI_Win_allocate_shared", "MPI_Win_shared_query")
CHARACTERS = ("STRING", "STRING_ARRAY", "STRING_2DARRAY")


def fortran_keys(entry, function, params, large):
    """Lines that describe the Fortran bindings; none if there are none."""
    attributes = entry["attributes"]
    forms = []
    # Large-count functions have no binding of their own in mpif.h and the mpi module.
    if attributes["f90_expressible"] and not large:
        forms.append("f90")
    if attributes["f08_expressible"]:
        forms.append("f08")
        if any(p["kind"] == "BUFFER" for p in params):
            forms.append("f08ts")
    if not forms:
        return []
    lines = [f'fortran = "{" ".join(forms)}"']
    omitted = [p["name"] for p in params if "f08_parameter" in p["suppress"] and p["kind"] != "VARARGS"]
    if omitted:
        lines.append(f"fortran_omits = {json.dumps(omitted)}")
    characters = sum(p["kind"] in CHARACTERS for p in params)
    if characters:
        lines.append(f"fortran_characters = {characters}")
    # MPI_Pcontrol has no ierror in the standard but one in MPICH: two words are forwarded.
    if function != "MPI_Pcontrol" and not any(p["name"] == "ierror" for p in entry["parameters"]):
        lines.append("fortran_ierror = false")
    if function in CPTR:
        lines.append("fortran_cptr = true")
    return lines


# --- Output ----------------------------------------------------------------------------------

RETURNS = {"ERROR_CODE": None, "ERROR_CLASS": None, "WALL_TIME": "double", "TICK_RESOLUTION": "double"}

# What MPI-3 removed, after MPI-1.3's C binding: parameters, number of Fortran words is the usual one.
REMOVED = {
    "MPI_Address": "location:buffer:in address:aint:out",
    "MPI_Errhandler_create": "function:address:in errhandler:errhandler:out",
    "MPI_Errhandler_get": "comm:comm:in errhandler:errhandler:out",
    "MPI_Errhandler_set": "comm:comm:in errhandler:errhandler:in",
    "MPI_Type_extent": "datatype:datatype:in extent:aint:out",
    "MPI_Type_hindexed": "count:int:in array_of_blocklengths:int:in:count array_of_displacements:aint:in:count "
    "oldtype:datatype:in newtype:datatype:out",
    "MPI_Type_hvector": "count:int:in blocklength:int:in stride:aint:in oldtype:datatype:in newtype:datatype:out",
    "MPI_Type_lb": "datatype:datatype:in displacement:aint:out",
    "MPI_Type_struct": "count:int:in array_of_blocklengths:int:in:count array_of_displacements:aint:in:count "
    "array_of_types:datatype:in:count newtype:datatype:out",
    "MPI_Type_ub": "datatype:datatype:in displacement:aint:out",
}

# Symbols of the known MPI libraries that have a PMPI twin and are yet not wrapped.
# (`*` stands for any characters; Fortran symbols in the mangling `mpi_x_`, which covers the others.)
SKIPPED = [
    ("MPIX_*", "extension outside the standard: parameters differ between libraries and their versions"),
    ("mpix_*", "extension outside the standard: parameters differ between libraries and their versions"),
    ("MPI_*_f", "Open MPI's internal alias of a Fortran symbol; compilers do not emit calls to it"),
    ("MPI_*_f08", "Open MPI's internal alias of a Fortran symbol; compilers do not emit calls to it"),
    ("mpi_sizeof_*", "MPI_Sizeof computes a size without MPI"),
    ("mpi_delete_error_*_f08_", "extension of MPICH 4.0 and 4.1 without the usual prefix"),
    ("mpi_f_sync_reg_*", "a compiler barrier, not a call of MPI"),
    ("mpi_*_dup_fn_*", "predefined callback: called by MPI"),
    ("mpi_*_null_copy_fn_*", "predefined callback: called by MPI"),
    ("mpi_*_null_delete_fn_*", "predefined callback: called by MPI"),
    ("mpi_dup_fn_", "predefined callback: called by MPI"),
    ("mpi_null_copy_fn_", "predefined callback: called by MPI"),
    ("mpi_null_delete_fn_", "predefined callback: called by MPI"),
    ("mpi_conversion_fn_null_", "predefined callback: called by MPI"),
]


def table(name, params, returns, klass, traffic, extra):
    lines = ["[[function]]", f'name = "{name}"']
    if params:
        lines.append("params = [" + ", ".join(f'"{p}"' for p in params) + "]")
    else:
        lines.append("params = []")
    lines.append(f'class = "{klass}"')
    if returns:
        lines.append(f'returns = "{returns}"')
    if traffic != "none":
        lines.append(f'traffic = "{traffic}"')
    return "\n".join(lines + extra) + "\n"


def main():
    entries = json.load(open(sys.argv[1])).values()
    tables = {}
    for entry in entries:
        attributes = entry["attributes"]
        if not attributes["c_expressible"] or attributes["callback"] or attributes["predefined_function"]:
            continue
        function = entry["name"]
        in_c = [p for p in entry["parameters"] if "c_parameter" not in p["suppress"] and p["kind"] != "VARARGS"]
        poly = any(p["kind"].startswith("POLY") or p["large_only"] for p in in_c)
        for large in (False, True) if poly else (False,):
            params = [p for p in in_c if large or not p["large_only"]]
            fields = []
            for param in params:
                kind = kind_of(function, param, large)
                field = [param["name"], kind, direction_of(function, param)]
                length = length_of(function, param, params)
                if kind != "address" and length != "one":
                    field.append(length)
                fields.append(":".join(field))
            name = function + ("_c" if large else "")
            returns = RETURNS.get(entry["return_kind"], "word")
            extra = fortran_keys(entry, function, params, large)
            tables[name] = table(name, fields, returns, class_of(function, params), traffic_of(function), extra)
    for name, fields in REMOVED.items():
        tables[name] = table(name, fields.split(), None, "ordinary", "none", ['fortran = "f90"'])
    print("# Every function of MPI, written by from_apis.py; see README.md.\n")
    print("\n".join(tables[name] for name in sorted(tables)))
    for name, reason in SKIPPED:
        print(f'[[skipped]]\nname = "{name}"\nreason = "{reason}"\n')


if __name__ == "__main__":
    main()
