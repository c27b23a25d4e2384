/* What objects_comm.c, objects_data.c and objects_shared.c leave out: older and newer ways to the same
 * objects, each call logged.
 *
 * usage: objects_more [LOG]   writes its calls and then its counts to LOG.<rank>; prints results.
 * Runs on 1 to 4 ranks; its file objects_more.dat goes into the working directory and is deleted.
 */
#define THREADS MPI_THREAD_SERIALIZED
#include "call.h"

#define WORLD MPI_COMM_WORLD

static int left, right, out[32], in[32];
static int ones[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3}, bytes[4] = {0, 4, 8, 12};
static MPI_Aint far[4] = {0, 4, 8, 12};
static MPI_Datatype types[4];

static void wait_for(MPI_Request *request) {
    MPI_Status status;
    CALL(MPI_Wait, "~request:q >status:s", request, &status);
}

static void free_comm(MPI_Comm *comm) { CALL(MPI_Comm_free, "~comm:c", comm); }

/* ---- older --------------------------------------------------------------------------------- */

static void attributes(void) {
    void *value;
    int key, flag;
    CALL(MPI_Keyval_create, "copy_fn:a delete_fn:a >keyval:i extra_state:a", MPI_NULL_COPY_FN,
         MPI_NULL_DELETE_FN, &key, (void *)0);
    CALL(MPI_Attr_put, "comm:c keyval:i attribute_val:a", WORLD, key, out);
    CALL(MPI_Attr_get, "comm:c keyval:i >attribute_val:k >flag:l", WORLD, key, &value, &flag);
    CALL(MPI_Attr_delete, "comm:c keyval:i", WORLD, key);
    CALL(MPI_Keyval_free, "~keyval:i", &key);
    RESULT("attribute", flag, value == out, key == MPI_KEYVAL_INVALID);
}

#define SENT "buf:b count:i datatype:t dest:r tag:g comm:c"
#define RECEIVED "buf:b count:i datatype:t source:r tag:g comm:c"

static void sends(void) {
    static char space[1000 + MPI_BSEND_OVERHEAD];
    MPI_Request requests[4];
    MPI_Status statuses[4];
    void *back;
    int size;
    for (int i = 0; i < 2; i++)
        CALL(MPI_Irecv, RECEIVED " >request:v", in + 8 * i, 8, MPI_INT, left, i, WORLD, &requests[i]);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_Ssend, SENT, out, 1, MPI_INT, right, 0, WORLD);
    CALL(MPI_Rsend, SENT, out, 2, MPI_INT, right, 1, WORLD);
    CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 2, requests,
         statuses);
    RESULT("sent", in[0], in[9]);
    CALL(MPI_Buffer_attach, "buffer:b size:i", space, (int)sizeof space);
    CALL(MPI_Bsend_init, SENT " >request:q", out, 3, MPI_INT, right, 2, WORLD, &requests[2]);
    CALL(MPI_Rsend_init, SENT " >request:q", out, 4, MPI_INT, right, 3, WORLD, &requests[3]);
    for (int i = 0; i < 2; i++)
        CALL(MPI_Irecv, RECEIVED " >request:v", in + 8 * i, 8, MPI_INT, MPI_ANY_SOURCE, i + 2, WORLD,
             &requests[i]);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_Startall, "count:i ~array_of_requests:q(count)", 2, requests + 2);
    CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 4, requests,
         MPI_STATUSES_IGNORE);
    for (int i = 2; i < 4; i++) CALL(MPI_Request_free, "~request:q", &requests[i]);
    CALL(MPI_Buffer_detach, ">buffer_addr:a >size:i", &back, &size);
    RESULT("started", in[2], in[11], size == sizeof space);
}

static void statuses(void) {
    MPI_Status status = {0};
    MPI_Datatype real;
    MPI_Count low, wide = 5;
    int count, flag;
    status.MPI_SOURCE = 1;
    status.MPI_TAG = 2;
    CALL(MPI_Status_set_elements, "~status:? datatype:t count:i", &status, MPI_INT, 3);
    CALL(MPI_Get_elements, "status:? datatype:t >count:u", &status, MPI_INT, &count);
    CALL(MPI_Status_set_elements_x, "~status:? datatype:t count:j", &status, MPI_INT, wide);
    CALL(MPI_Status_set_cancelled, "~status:? flag:l", &status, 1);
    CALL(MPI_Test_cancelled, "status:? >flag:l", &status, &flag);
    CALL(MPI_Type_create_f90_real, "p:u r:u >newtype:t", 6, MPI_UNDEFINED, &real);
    CALL(MPI_Type_get_true_extent_x, "datatype:t >true_lb:j >true_extent:j", real, &low, &wide);
    CALL(MPI_Type_create_f90_integer, "r:u >newtype:t", 4, &real);
    CALL(MPI_Type_create_f90_complex, "p:u r:u >newtype:t", MPI_UNDEFINED, 30, &real);
    RESULT("status", count, flag, wide);
}

/* ---- neighbours ---------------------------------------------------------------------------- */

#define EVEN "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c"
#define UNEVEN "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) recvtype:t comm:c"
#define ALL_UNEVEN \
    "sendbuf:b sendcounts:i(*) sdispls:i(*) sendtype:t recvbuf:b recvcounts:i(*) rdispls:i(*) recvtype:t " \
    "comm:c"
#define ALL_TYPED \
    "sendbuf:b sendcounts:i(*) sdispls:j(*) sendtypes:t(*) recvbuf:b recvcounts:i(*) rdispls:j(*) " \
    "recvtypes:t(*) comm:c"
#if MPI_VERSION >= 4
static void start(MPI_Request *request) {
    CALL(MPI_Start, "~request:q", request);
    wait_for(request);
    CALL(MPI_Request_free, "~request:q", request);
}
#endif

static void neighbours(void) {
    MPI_Comm line;
    MPI_Request request;
    int dims[1] = {ranks}, periods[1] = {0};
    CALL(MPI_Cart_create, "comm_old:c ndims:i dims:i(ndims) periods:l(ndims) reorder:l >comm_cart:c", WORLD,
         1, dims, periods, 0, &line);
    members = 2;
    CALL(MPI_Ineighbor_allgatherv, UNEVEN " >request:q", out, 1, MPI_INT, in, ones, places, MPI_INT, line,
         &request);
    wait_for(&request);
    CALL(MPI_Ineighbor_alltoall, EVEN " >request:q", out, 1, MPI_INT, in, 1, MPI_INT, line, &request);
    wait_for(&request);
    CALL(MPI_Ineighbor_alltoallv, ALL_UNEVEN " >request:q", out, ones, places, MPI_INT, in, ones, places,
         MPI_INT, line, &request);
    wait_for(&request);
    CALL(MPI_Ineighbor_alltoallw, ALL_TYPED " >request:q", out, ones, far, types, in, ones, far, types, line,
         &request);
    wait_for(&request);
    RESULT("neighbours", in[0], in[1]);
#if MPI_VERSION >= 4
#define STARTED " info:n >request:q"
    CALL(MPI_Neighbor_allgather_init, EVEN STARTED, out, 1, MPI_INT, in, 1, MPI_INT, line, MPI_INFO_NULL,
         &request);
    start(&request);
    CALL(MPI_Neighbor_allgatherv_init, UNEVEN STARTED, out, 1, MPI_INT, in, ones, places, MPI_INT, line,
         MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Neighbor_alltoall_init, EVEN STARTED, out, 1, MPI_INT, in, 1, MPI_INT, line, MPI_INFO_NULL,
         &request);
    start(&request);
    CALL(MPI_Neighbor_alltoallv_init, ALL_UNEVEN STARTED, out, ones, places, MPI_INT, in, ones, places,
         MPI_INT, line, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Neighbor_alltoallw_init, ALL_TYPED STARTED, out, ones, far, types, in, ones, far, types, line,
         MPI_INFO_NULL, &request);
    start(&request);
#endif
    free_comm(&line);
}

/* ---- files --------------------------------------------------------------------------------- */

#define THERE "fh:f buf:b count:i datatype:t"
#define AT "fh:f offset:j buf:b count:i datatype:t"
#define ENDS "fh:f buf:b >status:-"

static void files(void) {
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    MPI_Offset own = 16 * rank;
    CALL(MPI_File_open, "comm:c filename:z amode:i info:n >fh:f", WORLD, "objects_more.dat",
         MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    CALL(MPI_File_write_at_all_begin, AT, file, own, out, 4, MPI_INT);
    CALL(MPI_File_write_at_all_end, ENDS, file, out, &status);
    CALL(MPI_File_iread_at_all, AT " >request:q", file, own, in, 4, MPI_INT, &request);
    wait_for(&request);
    RESULT("file", in[0], in[3]);
    CALL(MPI_File_seek, "fh:f offset:j whence:i", file, own, MPI_SEEK_SET);
    CALL(MPI_File_iwrite_all, THERE " >request:q", file, out, 1, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_iread_all, THERE " >request:q", file, in, 1, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_read_all_begin, THERE, file, in, 1, MPI_INT);
    CALL(MPI_File_read_all_end, ENDS, file, in, &status);
    CALL(MPI_File_write_ordered_begin, THERE, file, out, 4, MPI_BYTE);
    CALL(MPI_File_write_ordered_end, ENDS, file, out, &status);
    CALL(MPI_File_iwrite_shared, THERE " >request:q", file, out, 1, MPI_BYTE, &request);
    wait_for(&request);
    RESULT("split", in[0]);
    CALL(MPI_File_close, "~fh:f", &file);
}

/* ---- newer --------------------------------------------------------------------------------- */

#if MPI_VERSION >= 4
#define ROOTED "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t root:r comm:c"
#define REDUCED "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c"

static void persistent_collectives(void) {
    MPI_Request request;
    int root = ranks - 1;
    CALL(MPI_Gather_init, ROOTED STARTED, out, 1, MPI_INT, in, 1, MPI_INT, root, WORLD, MPI_INFO_NULL,
         &request);
    start(&request);
    CALL(MPI_Scatter_init, ROOTED STARTED, out, 1, MPI_INT, in, 1, MPI_INT, root, WORLD, MPI_INFO_NULL,
         &request);
    start(&request);
    members = rank == root ? ranks : -1;
    CALL(MPI_Gatherv_init, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) "
         "recvtype:t root:r comm:c" STARTED, out, 1, MPI_INT, in, ones, places, MPI_INT, root, WORLD,
         MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Scatterv_init, "sendbuf:b sendcounts:i(*) displs:i(*) sendtype:t recvbuf:b recvcount:i "
         "recvtype:t root:r comm:c" STARTED, out, ones, places, MPI_INT, in, 1, MPI_INT, root, WORLD,
         MPI_INFO_NULL, &request);
    start(&request);
    members = ranks;
    CALL(MPI_Allgather_init, EVEN STARTED, out, 1, MPI_INT, in, 1, MPI_INT, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Allgatherv_init, UNEVEN STARTED, out, 1, MPI_INT, in, ones, places, MPI_INT, WORLD,
         MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Alltoall_init, EVEN STARTED, out, 1, MPI_INT, in, 1, MPI_INT, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Alltoallv_init, ALL_UNEVEN STARTED, out, ones, places, MPI_INT, in, ones, places, MPI_INT, WORLD,
         MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Alltoallw_init, "sendbuf:b sendcounts:i(*) sdispls:i(*) sendtypes:t(*) recvbuf:b "
         "recvcounts:i(*) rdispls:i(*) recvtypes:t(*) comm:c" STARTED, out, ones, bytes, types, in, ones,
         bytes, types, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    RESULT("persistent", in[0], in[ranks - 1]);
    CALL(MPI_Reduce_init, "sendbuf:b recvbuf:b count:i datatype:t op:o root:r comm:c" STARTED, out, in, 1,
         MPI_INT, MPI_SUM, root, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Reduce_scatter_init, "sendbuf:b recvbuf:b recvcounts:i(*) datatype:t op:o comm:c" STARTED, out,
         in, ones, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Reduce_scatter_block_init, "sendbuf:b recvbuf:b recvcount:i datatype:t op:o comm:c" STARTED, out,
         in, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Scan_init, REDUCED STARTED, out, in, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    CALL(MPI_Exscan_init, REDUCED STARTED, out, in + 1, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    start(&request);
    RESULT("reduced", in[0]);
}

static void from_groups(void) {
    MPI_Comm all, later, between = MPI_COMM_NULL;
    MPI_Group world, mine, theirs;
    MPI_Request request;
    MPI_Info info;
    int self = rank, partner = 1 - rank, number;
    CALL(MPI_Comm_group, "comm:c >group:p", WORLD, &world);
    CALL(MPI_Comm_create_from_group, "group:p stringtag:z info:n errhandler:e >newcomm:c", world, "everyone",
         MPI_INFO_NULL, MPI_ERRORS_RETURN, &all);
    CALL(MPI_Comm_size, "comm:c >size:i", all, &number);
    if (ranks > 1 && rank < 2) {
        CALL(MPI_Group_incl, "group:p n:i ranks:r(n) >newgroup:p", world, 1, &self, &mine);
        CALL(MPI_Group_incl, "group:p n:i ranks:r(n) >newgroup:p", world, 1, &partner, &theirs);
        CALL(MPI_Intercomm_create_from_groups,
             "local_group:p local_leader:r remote_group:p remote_leader:r stringtag:z info:n errhandler:e "
             ">newintercomm:c",
             mine, 0, theirs, 0, "the two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &between);
        CALL(MPI_Group_free, "~group:p", &mine);
        CALL(MPI_Group_free, "~group:p", &theirs);
        free_comm(&between);
    }
    CALL(MPI_Comm_idup_with_info, "comm:c info:n >newcomm:c >request:q", all, MPI_INFO_NULL, &later,
         &request);
    wait_for(&request);
    free_comm(&later);
    free_comm(&all);
    CALL(MPI_Group_free, "~group:p", &world);
    CALL(MPI_Isendrecv_replace, "buf:b count:i datatype:t dest:r sendtag:g source:r recvtag:g comm:c "
         ">request:v", in, 1, MPI_INT, right, 5, left, 5, WORLD, &request);
    wait_for(&request);
    CALL(MPI_Info_create_env, "argc:i argv:a >info:n", 0, (char **)0, &info);
    CALL(MPI_Info_free, "~info:n", &info);
    RESULT("from groups", number);
}
#endif

#if MPI_VERSION >= 4
/* A session beside the world. */
static void sessions(void) {
    MPI_Session session;
    MPI_Group world;
    MPI_Comm comm;
    MPI_Info info;
    MPI_Errhandler seen;
    char name[256];
    int count, length = sizeof name, size;
    CALL(MPI_Session_init, "info:n errhandler:e >session:h", MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    CALL(MPI_Session_get_num_psets, "session:h info:n >npset_names:i", session, MPI_INFO_NULL, &count);
    CALL(MPI_Session_get_nth_pset, "session:h info:n n:u ~pset_len:i >pset_name:?", session, MPI_INFO_NULL, 0,
         &length, name);
    SAY(name);
    CALL(MPI_Session_get_pset_info, "session:h pset_name:z >info:n", session, name, &info);
    CALL(MPI_Info_free, "~info:n", &info);
    CALL(MPI_Session_get_info, "session:h >info_used:n", session, &info);
    CALL(MPI_Info_free, "~info:n", &info);
    CALL(MPI_Session_set_errhandler, "session:h errhandler:e", session, MPI_ERRORS_ARE_FATAL);
    CALL(MPI_Session_get_errhandler, "session:h >errhandler:e", session, &seen);
    CALL(MPI_Errhandler_free, "~errhandler:e", &seen);
    CALL(MPI_Group_from_session_pset, "session:h pset_name:z >newgroup:p", session, "mpi://WORLD", &world);
    CALL(MPI_Comm_create_from_group, "group:p stringtag:z info:n errhandler:e >newcomm:c", world, "session's",
         MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    CALL(MPI_Group_free, "~group:p", &world);
    CALL(MPI_Comm_size, "comm:c >size:i", comm, &size);
    CALL(MPI_Barrier, "comm:c", comm);
    free_comm(&comm);
    CALL(MPI_Session_finalize, "~session:h", &session);
    RESULT("session", count > 0, length, size);
}
#endif

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
static void newest(void) {
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    int flag, index, count, indices[2], number;
    CALL(MPI_Irecv, RECEIVED " >request:v", in, 8, MPI_INT, left, 7, WORLD, &requests[0]);
    CALL(MPI_Issend, SENT " >request:q", out, 1, MPI_INT, right, 7, WORLD, &requests[1]);
    do CALL(MPI_Request_get_status_any, "count:i array_of_requests:q(count) >index:x >flag:l >status:s", 2,
            requests, &index, &flag, &status);
    while (!flag);
    do CALL(MPI_Request_get_status_all, "count:i array_of_requests:q(count) >flag:l "
            ">array_of_statuses:s(count)", 2, requests, &flag, statuses);
    while (!flag);
    CALL(MPI_Request_get_status_some, "incount:i array_of_requests:q(incount) >outcount:u "
         ">array_of_indices:x(outcount) >array_of_statuses:s(outcount)", 2, requests, &count, indices,
         statuses);
    CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 2, requests,
         statuses);
    RESULT("looked", count, statuses[0].MPI_SOURCE);
    CALL(MPI_Status_set_source, "~status:? source:r", &status, MPI_ANY_SOURCE);
    CALL(MPI_Status_set_tag, "~status:? tag:g", &status, MPI_ANY_TAG);
    CALL(MPI_Status_set_error, "~status:? err:i", &status, 3);
    CALL(MPI_Status_get_source, "status:? >source:r", &status, &number);
    CALL(MPI_Status_get_tag, "status:? >tag:g", &status, &number);
    CALL(MPI_Status_get_error, "status:? >err:i", &status, &number);
    RESULT("status by calls", number);
}
#endif

int main(int argc, char **argv) {
    begin(argc, argv);
    left = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    for (int i = 0; i < 32; i++) out[i] = 100 * rank + i;
    for (int i = 0; i < 4; i++) types[i] = MPI_INT;
    attributes();
    sends();
    statuses();
    neighbours();
    files();
#if MPI_VERSION >= 4
    persistent_collectives();
    from_groups();
    sessions();
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    newest();
#endif
    return end();
}
