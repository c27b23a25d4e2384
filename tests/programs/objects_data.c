/* Datatypes, operations and every kind of request, each call logged.
 *
 * usage: objects_data [LOG]   writes its calls and then its counts to LOG.<rank>; prints results.
 * Runs on 1 to 4 ranks.
 */
#define THREADS MPI_THREAD_FUNNELED
#include "call.h"

#define WORLD MPI_COMM_WORLD
#define LENGTH 8

static int left, right, out[4 * LENGTH], in[4 * LENGTH];

static void wait_for(MPI_Request *request) {
    MPI_Status status;
    CALL(MPI_Wait, "~request:q >status:s", request, &status);
}

/* ---- datatypes ----------------------------------------------------------------------------- */

static void free_type(MPI_Datatype *type) { CALL(MPI_Type_free, "~datatype:t", type); }

static void layouts(void) {
    MPI_Datatype made[11], inner[2], parts[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Aint offsets[2] = {0, 16}, low, extent, here, contents_at[4];
    int blocks[2] = {1, 2}, places[2] = {0, 3}, numbers[16], given[3], number, integers, addresses, types,
        combiner;
    int sizes[2] = {4, 6}, inside[2] = {2, 3}, starts[2] = {1, 0}, sum = 0;
    int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, process[2] = {1, 1};
    int defaults[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Count wide, wide_low;
    char name[MPI_MAX_OBJECT_NAME];
    CALL(MPI_Type_contiguous, "count:i oldtype:t >newtype:t", 2, MPI_INT, &made[0]);
    CALL(MPI_Type_vector, "count:i blocklength:i stride:i oldtype:t >newtype:t", 2, 1, 3, made[0], &made[1]);
    CALL(MPI_Type_create_hvector, "count:i blocklength:i stride:j oldtype:t >newtype:t", 2, 1, (MPI_Aint)-64,
         MPI_FLOAT, &made[2]);
    CALL(MPI_Type_indexed, "count:i array_of_blocklengths:i(count) array_of_displacements:i(count) oldtype:t "
         ">newtype:t", 2, blocks, places, MPI_INT, &made[3]);
    CALL(MPI_Type_create_hindexed, "count:i array_of_blocklengths:i(count) array_of_displacements:j(count) "
         "oldtype:t >newtype:t", 2, blocks, offsets, MPI_INT, &made[4]);
    CALL(MPI_Type_create_indexed_block, "count:i blocklength:i array_of_displacements:i(count) oldtype:t "
         ">newtype:t", 2, 3, places, MPI_CHAR, &made[5]);
    CALL(MPI_Type_create_hindexed_block, "count:i blocklength:i array_of_displacements:j(count) oldtype:t "
         ">newtype:t", 2, 3, offsets, MPI_CHAR, &made[6]);
    CALL(MPI_Type_create_struct, "count:i array_of_blocklengths:i(count) array_of_displacements:j(count) "
         "array_of_types:t(count) >newtype:t", 2, blocks, offsets, parts, &made[7]);
    CALL(MPI_Type_create_subarray, "ndims:i array_of_sizes:i(ndims) array_of_subsizes:i(ndims) "
         "array_of_starts:i(ndims) order:i oldtype:t >newtype:t", 2, sizes, inside, starts, MPI_ORDER_C,
         MPI_INT, &made[8]);
    CALL(MPI_Type_create_darray,
         "size:i rank:r ndims:i array_of_gsizes:i(ndims) array_of_distribs:i(ndims) array_of_dargs:i(ndims) "
         "array_of_psizes:i(ndims) order:i oldtype:t >newtype:t",
         1, 0, 2, sizes, distributions, defaults, process, MPI_ORDER_FORTRAN, MPI_INT, &made[9]);
    CALL(MPI_Type_create_resized, "oldtype:t lb:j extent:j >newtype:t", made[7], (MPI_Aint)-8, (MPI_Aint)64,
         &made[10]);
    for (int i = 0; i < 11; i++) {
        CALL(MPI_Type_commit, "~datatype:t", &made[i]);
        CALL(MPI_Type_size, "datatype:t >size:u", made[i], &number);
        CALL(MPI_Type_get_extent, "datatype:t >lb:j >extent:j", made[i], &low, &extent);
        CALL(MPI_Type_get_envelope, "datatype:t >num_integers:i >num_addresses:i >num_datatypes:i "
             ">combiner:i", made[i], &integers, &addresses, &types, &combiner);
        RESULT("type", number, low, extent, integers, addresses, types);
        sum += combiner == MPI_COMBINER_STRUCT;
    }
    CALL(MPI_Type_get_contents,
         "datatype:t max_integers:i max_addresses:i max_datatypes:i >array_of_integers:i(max_integers) "
         ">array_of_addresses:j(max_addresses) >array_of_datatypes:t(max_datatypes)",
         made[7], 3, 2, 2, given, contents_at, inner);
    RESULT("contents", given[0], given[1], contents_at[1], inner[1] == MPI_DOUBLE, sum);
    /* The parts of a made type are handed out, and freed by who asked. */
    CALL(MPI_Type_get_contents,
         "datatype:t max_integers:i max_addresses:i max_datatypes:i >array_of_integers:i(max_integers) "
         ">array_of_addresses:j(max_addresses) >array_of_datatypes:t(max_datatypes)",
         made[1], 3, 0, 1, numbers, contents_at, inner);
    free_type(&inner[0]);
    CALL(MPI_Type_get_true_extent, "datatype:t >true_lb:j >true_extent:j", made[0], &low, &extent);
    CALL(MPI_Type_get_extent_x, "datatype:t >lb:j >extent:j", made[10], &wide_low, &wide);
    CALL(MPI_Type_size_x, "datatype:t >size:j", made[7], &wide);
    CALL(MPI_Type_dup, "oldtype:t >newtype:t", made[7], &inner[0]);
    CALL(MPI_Type_set_name, "datatype:t type_name:z", inner[0], "cell");
    CALL(MPI_Type_get_name, "datatype:t >type_name:z >resultlen:i", inner[0], name, &number);
    SAY(name);
    CALL(MPI_Type_get_name, "datatype:t >type_name:z >resultlen:i", MPI_INT, name, &number);
    free_type(&inner[0]);
    CALL(MPI_Type_match_size, "typeclass:i size:i >datatype:?", MPI_TYPECLASS_INTEGER, 8, &inner[0]);
    CALL(MPI_Get_address, "location:b >address:j", &out[1], &here);
    RESULT("sizes", wide, wide_low, low, extent, here == (MPI_Aint)&out[1]);
    for (int i = 10; i >= 0; i--) free_type(&made[i]);
}

static int copied;

static int copy_attribute(MPI_Datatype type, int keyval, void *extra, void *from, void *to, int *flag) {
    (void)type, (void)keyval, (void)extra;
    *(void **)to = from;
    copied++;
    return *flag = 1, MPI_SUCCESS;
}

static void type_attributes(void) {
    MPI_Datatype pair, copy;
    void *value;
    int key, flag;
    CALL(MPI_Type_create_keyval, "type_copy_attr_fn:a type_delete_attr_fn:a >type_keyval:i extra_state:a",
         copy_attribute, MPI_TYPE_NULL_DELETE_FN, &key, (void *)7);
    CALL(MPI_Type_contiguous, "count:i oldtype:t >newtype:t", 2, MPI_INT, &pair);
    CALL(MPI_Type_set_attr, "datatype:t type_keyval:i attribute_val:a", pair, key, out);
    CALL(MPI_Type_dup, "oldtype:t >newtype:t", pair, &copy);
    CALL(MPI_Type_get_attr, "datatype:t type_keyval:i >attribute_val:k >flag:l", copy, key, &value, &flag);
    RESULT("type attribute", flag, copied, value == out);
    CALL(MPI_Type_delete_attr, "datatype:t type_keyval:i", pair, key);
    free_type(&copy);
    free_type(&pair);
    CALL(MPI_Type_free_keyval, "~type_keyval:i", &key);
}

static void packing(void) {
    char packed[128];
    int bytes, position = 0, value = 0;
    MPI_Aint wide = 0, length;
    double real = 2.5;
    CALL(MPI_Pack_size, "incount:i datatype:t comm:c >size:u", 3, MPI_INT, WORLD, &bytes);
    CALL(MPI_Pack, "inbuf:b incount:i datatype:t outbuf:b outsize:i ~position:i comm:c", out, 3, MPI_INT,
         packed, 128, &position, WORLD);
    RESULT("packed", bytes >= position, position);
    position = 0;
    CALL(MPI_Unpack, "inbuf:b insize:i ~position:i outbuf:b outcount:i datatype:t comm:c", packed, 128,
         &position, &value, 1, MPI_INT, WORLD);
    CALL(MPI_Pack_external_size, "datarep:z incount:i datatype:t >size:j", "external32", 1, MPI_DOUBLE,
         &length);
    CALL(MPI_Pack_external, "datarep:z inbuf:b incount:i datatype:t outbuf:b outsize:j ~position:j",
         "external32", &real, 1, MPI_DOUBLE, packed, (MPI_Aint)128, &wide);
    RESULT("outside", length, wide, value, position);
    wide = 0;
    real = 0;
    CALL(MPI_Unpack_external, "datarep:z inbuf:b insize:j ~position:j outbuf:b outcount:i datatype:t",
         "external32", packed, (MPI_Aint)128, &wide, &real, 1, MPI_DOUBLE);
    RESULT("back", real * 10, wide);
}

/* ---- operations ---------------------------------------------------------------------------- */

static int combined;

static void combine(void *from, void *into, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; i++) ((int *)into)[i] += 2 * ((int *)from)[i];
    combined++;
}

#define REDUCED "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c"

static void operations(void) {
    MPI_Op twice;
    int flag, ones[4] = {1, 1, 1, 1};
    struct { double value; int place; } mine = {rank % 3, rank}, most;
    CALL(MPI_Op_create, "user_fn:a commute:l >op:o", combine, 1, &twice);
    CALL(MPI_Op_commutative, "op:o >commute:l", twice, &flag);
    CALL(MPI_Reduce_local, "inbuf:b inoutbuf:b count:i datatype:t op:o", out, in, 4, MPI_INT, twice);
    CALL(MPI_Allreduce, REDUCED, out, in, 4, MPI_INT, twice, WORLD);
    RESULT("our own", flag, combined > 0);
    CALL(MPI_Allreduce, REDUCED, MPI_IN_PLACE, in, 2, MPI_INT, MPI_PROD, WORLD);
    CALL(MPI_Allreduce, REDUCED, out, in, 4, MPI_INT, MPI_BOR, WORLD);
    CALL(MPI_Allreduce, REDUCED, &mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, WORLD);
    RESULT("most", in[0], most.place, most.value);
    CALL(MPI_Scan, REDUCED, out, in, 2, MPI_INT, MPI_MIN, WORLD);
    CALL(MPI_Exscan, REDUCED, out, in, 2, MPI_INT, MPI_SUM, WORLD);
    CALL(MPI_Reduce, "sendbuf:b recvbuf:b count:i datatype:t op:o root:r comm:c", rank ? (void *)in :
         MPI_IN_PLACE, in, 2, MPI_INT, MPI_MAX, 0, WORLD);
    members = ranks;
    CALL(MPI_Reduce_scatter, "sendbuf:b recvbuf:b recvcounts:i(*) datatype:t op:o comm:c", out, in, ones,
         MPI_INT, MPI_SUM, WORLD);
    RESULT("scattered", in[0]);
    CALL(MPI_Reduce_scatter_block, "sendbuf:b recvbuf:b recvcount:i datatype:t op:o comm:c", MPI_IN_PLACE,
         out, 1, MPI_INT, MPI_SUM, WORLD);
    CALL(MPI_Op_free, "~op:o", &twice);
}

/* ---- point-to-point ------------------------------------------------------------------------ */

#define SENT "buf:b count:i datatype:t dest:r tag:g comm:c"
#define RECEIVED "buf:b count:i datatype:t source:r tag:g comm:c"

static void modes(void) {
    static char space[1000 + MPI_BSEND_OVERHEAD];
    MPI_Request requests[6];
    MPI_Status statuses[6];
    void *back;
    int size, count, elements, flag;
    MPI_Count wide;
    CALL(MPI_Buffer_attach, "buffer:b size:i", space, (int)sizeof space);
    CALL(MPI_Irecv, RECEIVED " >request:v", in, LENGTH, MPI_INT, left, 1, WORLD, &requests[0]);
    CALL(MPI_Irecv, RECEIVED " >request:v", in + LENGTH, LENGTH, MPI_INT, left, 2, WORLD, &requests[1]);
    CALL(MPI_Irecv, RECEIVED " >request:v", in + 2 * LENGTH, LENGTH, MPI_INT, MPI_ANY_SOURCE, 3, WORLD,
         &requests[2]);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_Bsend, SENT, out, 3, MPI_INT, right, 1, WORLD);
    CALL(MPI_Irsend, SENT " >request:q", out, 4, MPI_INT, right, 2, WORLD, &requests[3]);
    CALL(MPI_Issend, SENT " >request:q", out, 5, MPI_INT, right, 3, WORLD, &requests[4]);
    requests[5] = MPI_REQUEST_NULL;
    CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 6, requests,
         statuses);
    CALL(MPI_Get_count, "status:s datatype:t >count:u", &statuses[0], MPI_INT, &count);
    CALL(MPI_Get_count, "status:s datatype:t >count:u", &statuses[1], MPI_DOUBLE_INT, &size);
    CALL(MPI_Get_elements, "status:s datatype:t >count:u", &statuses[2], MPI_INT, &elements);
    CALL(MPI_Get_elements_x, "status:s datatype:t >count:j", &statuses[2], MPI_INT, &wide);
    CALL(MPI_Test_cancelled, "status:s >flag:l", &statuses[0], &flag);
    RESULT("counts", count, size == MPI_UNDEFINED, elements, wide, statuses[2].MPI_SOURCE, flag);
    CALL(MPI_Ibsend, SENT " >request:q", out, 2, MPI_INT, right, 4, WORLD, &requests[0]);
    CALL(MPI_Recv, RECEIVED " >status:s", in, LENGTH, MPI_INT, left, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE);
    wait_for(&requests[0]);
    CALL(MPI_Sendrecv_replace, "buf:b count:i datatype:t dest:r sendtag:g source:r recvtag:g comm:c "
         ">status:s", out, 1, MPI_INT, right, 6, left, MPI_ANY_TAG, WORLD, &statuses[0]);
    RESULT("replaced", out[0], statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);
    out[0] = rank;
    CALL(MPI_Irecv, RECEIVED " >request:v", in, 1, MPI_INT, left, 99, WORLD, &requests[0]);
    CALL(MPI_Cancel, "~request:q", &requests[0]);
    CALL(MPI_Wait, "~request:q >status:?", &requests[0], &statuses[0]);
    CALL(MPI_Test_cancelled, "status:? >flag:l", &statuses[0], &flag);
    CALL(MPI_Buffer_detach, ">buffer_addr:a >size:i", &back, &size);
    RESULT("buffer", flag, back == space, size == sizeof space);
}

static void matched(void) {
    MPI_Message message;
    MPI_Request request, answer;
    MPI_Status status;
    int flag, count;
    CALL(MPI_Improbe, "source:r tag:g comm:c >flag:l >message:m >status:s", left, 71, WORLD, &flag, &message,
         &status);
    CALL(MPI_Isend, SENT " >request:q", out, 3, MPI_INT, right, 72, WORLD, &request);
    CALL(MPI_Isend, SENT " >request:q", out, 4, MPI_INT, right, 73, WORLD, &answer);
    CALL(MPI_Mprobe, "source:r tag:g comm:c >message:m >status:s", MPI_ANY_SOURCE, 72, WORLD, &message,
         &status);
    CALL(MPI_Get_count, "status:s datatype:t >count:u", &status, MPI_INT, &count);
    CALL(MPI_Mrecv, "buf:b count:i datatype:t ~message:m >status:s", in, count, MPI_INT, &message,
         MPI_STATUS_IGNORE);
    wait_for(&request);
    do CALL(MPI_Improbe, "source:r tag:g comm:c >flag:l >message:m >status:s", left, MPI_ANY_TAG, WORLD,
            &flag, &message, &status);
    while (!flag);
    CALL(MPI_Imrecv, "buf:b count:i datatype:t ~message:m >request:v", in, LENGTH, MPI_INT, &message,
         &request);
    CALL(MPI_Wait, "~request:q >status:s", &request, MPI_STATUS_IGNORE);
    wait_for(&answer);
    RESULT("matched", count, in[0], status.MPI_TAG);
    CALL(MPI_Mprobe, "source:r tag:g comm:c >message:m >status:s", MPI_PROC_NULL, 1, WORLD, &message,
         &status);
    CALL(MPI_Mrecv, "buf:b count:i datatype:t ~message:m >status:s", in, 1, MPI_INT, &message, &status);
    CALL(MPI_Isend, SENT " >request:q", out, 1, MPI_INT, right, 74, WORLD, &request);
    CALL(MPI_Probe, "source:r tag:g comm:c >status:s", left, MPI_ANY_TAG, WORLD, &status);
    CALL(MPI_Recv, RECEIVED " >status:s", in, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, WORLD, &status);
    wait_for(&request);
    RESULT("probed", status.MPI_SOURCE, status.MPI_TAG, in[0]);
}

#define ALL "count:i ~array_of_requests:q(count)"
#define SOME "incount:i ~array_of_requests:q(incount) >outcount:u >array_of_indices:x(outcount) " \
             ">array_of_statuses:s(outcount)"

static void persistent(void) {
    MPI_Request requests[4];
    MPI_Status statuses[4], status;
    int indices[4], count, index, flag, done;
    CALL(MPI_Recv_init, RECEIVED " >request:v", in, LENGTH, MPI_INT, left, 51, WORLD, &requests[0]);
    CALL(MPI_Recv_init, RECEIVED " >request:v", in + LENGTH, LENGTH, MPI_INT, MPI_ANY_SOURCE, 52, WORLD,
         &requests[1]);
    CALL(MPI_Send_init, SENT " >request:q", out, 2, MPI_INT, right, 51, WORLD, &requests[2]);
    CALL(MPI_Ssend_init, SENT " >request:q", out, 3, MPI_INT, right, 52, WORLD, &requests[3]);
    for (int turn = 0; turn < 6; turn++) {
        CALL(MPI_Startall, "count:i ~array_of_requests:q(count)", 3, requests);
        CALL(MPI_Start, "~request:q", &requests[3]);
        if (turn == 0) CALL(MPI_Waitall, ALL " >array_of_statuses:s(count)", 4, requests, statuses);
        if (turn == 1) {
            for (done = 0; done < 4; done += count)
                CALL(MPI_Waitsome, SOME, 4, requests, &count, indices, statuses);
            CALL(MPI_Waitsome, SOME, 4, requests, &count, indices, statuses);
        }
        if (turn == 2)
            for (int i = 0; i < 5; i++) CALL(MPI_Waitany, ALL " >index:x >status:s", 4, requests, &index,
                &status);
        if (turn == 3) {
            for (done = 0; done < 4; done += count)
                CALL(MPI_Testsome, SOME, 4, requests, &count, indices, MPI_STATUSES_IGNORE);
            CALL(MPI_Testsome, SOME, 4, requests, &count, indices, statuses);
        }
        if (turn == 4)
            do CALL(MPI_Testall, ALL " >flag:l >array_of_statuses:s(count)", 4, requests, &flag,
                    MPI_STATUSES_IGNORE);
            while (!flag);
        if (turn == 5)
            for (done = 0; done < 4; done += flag)
                CALL(MPI_Testany, ALL " >index:x >flag:l >status:s", 4, requests, &index, &flag, &status);
        RESULT("turn", turn, in[0], in[LENGTH + 1]);
    }
    do CALL(MPI_Request_get_status, "request:q >flag:l >status:s", requests[0], &flag, &status);
    while (!flag);
    for (int i = 0; i < 4; i++) CALL(MPI_Request_free, "~request:q", &requests[i]);
    CALL(MPI_Isend, SENT " >request:q", out, 1, MPI_INT, right, 53, WORLD, &requests[0]);
    CALL(MPI_Request_free, "~request:q", &requests[0]);
    CALL(MPI_Recv, RECEIVED " >status:s", in, 1, MPI_INT, left, 53, WORLD, &status);
}

/* ---- requests of other kinds --------------------------------------------------------------- */

static int query(void *extra, MPI_Status *status) {
    (void)extra;
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int freed(void *extra) { return *(int *)extra += 1, MPI_SUCCESS; }
static int cancelled(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

#define BOTH "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c >request:q"
#define ROOTED "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t root:r comm:c >request:q"

static void nonblocking_collectives(void) {
    MPI_Request requests[15];
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    int ones[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3}, bytes[4] = {0, 4, 8, 12}, root = ranks - 1;
    int *to = calloc(16 * LENGTH, sizeof(int)), complete = 0;
    MPI_Request ours;
    CALL(MPI_Ibarrier, "comm:c >request:q", WORLD, &requests[0]);
    CALL(MPI_Ibcast, "buffer:b count:i datatype:t root:r comm:c >request:q", to, 2, MPI_INT, root, WORLD,
         &requests[1]);
    CALL(MPI_Iallreduce, REDUCED " >request:q", out, to + LENGTH, 2, MPI_INT, MPI_SUM, WORLD, &requests[2]);
    CALL(MPI_Ireduce, "sendbuf:b recvbuf:b count:i datatype:t op:o root:r comm:c >request:q", out, to + 2 *
         LENGTH, 2, MPI_INT, MPI_SUM, root, WORLD, &requests[3]);
    CALL(MPI_Igather, ROOTED, out, 1, MPI_INT, to + 3 * LENGTH, 1, MPI_INT, root, WORLD, &requests[4]);
    CALL(MPI_Iscatter, ROOTED, out, 1, MPI_INT, to + 4 * LENGTH, 1, MPI_INT, root, WORLD, &requests[5]);
    CALL(MPI_Iallgather, BOTH, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to + 5 * LENGTH, 1, MPI_INT, WORLD,
         &requests[6]);
    CALL(MPI_Ialltoall, BOTH, out, 1, MPI_INT, to + 6 * LENGTH, 1, MPI_INT, WORLD, &requests[7]);
    members = rank == root ? ranks : -1;
    CALL(MPI_Igatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) recvtype:t "
         "root:r comm:c >request:q", out, 1, MPI_INT, to + 7 * LENGTH, ones, places, MPI_INT, root, WORLD,
         &requests[8]);
    CALL(MPI_Iscatterv, "sendbuf:b sendcounts:i(*) displs:i(*) sendtype:t recvbuf:b recvcount:i recvtype:t "
         "root:r comm:c >request:q", out, ones, places, MPI_INT, to + 8 * LENGTH, 1, MPI_INT, root, WORLD,
         &requests[9]);
    members = ranks;
    CALL(MPI_Iallgatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) recvtype:t "
         "comm:c >request:q", out, 1, MPI_INT, to + 9 * LENGTH, ones, places, MPI_INT, WORLD, &requests[10]);
    CALL(MPI_Ialltoallw, "sendbuf:b sendcounts:i(*) sdispls:i(*) sendtypes:t(*) recvbuf:b recvcounts:i(*) "
         "rdispls:i(*) recvtypes:t(*) comm:c >request:q", out, ones, bytes, types, to + 10 * LENGTH, ones,
         bytes, types, WORLD, &requests[11]);
    CALL(MPI_Iscan, REDUCED " >request:q", out, to + 11 * LENGTH, 1, MPI_INT, MPI_SUM, WORLD, &requests[12]);
    CALL(MPI_Ireduce_scatter, "sendbuf:b recvbuf:b recvcounts:i(*) datatype:t op:o comm:c >request:q", out,
         to + 12 * LENGTH, ones, MPI_INT, MPI_SUM, WORLD, &requests[13]);
    CALL(MPI_Ireduce_scatter_block, "sendbuf:b recvbuf:b recvcount:i datatype:t op:o comm:c >request:q", out,
         to + 13 * LENGTH, 1, MPI_INT, MPI_SUM, WORLD, &requests[14]);
    CALL(MPI_Waitall, ALL " >array_of_statuses:s(count)", 15, requests, MPI_STATUSES_IGNORE);
    CALL(MPI_Iexscan, REDUCED " >request:q", out, to, 1, MPI_INT, MPI_SUM, WORLD, &requests[0]);
    wait_for(&requests[0]);
    RESULT("collected", to[LENGTH], to[4 * LENGTH], to[6 * LENGTH], to[8 * LENGTH], to[10 * LENGTH], to[12 *
           LENGTH]);
    members = ranks;
    CALL(MPI_Alltoallw, "sendbuf:b sendcounts:i(*) sdispls:i(*) sendtypes:t(*) recvbuf:b recvcounts:i(*) "
         "rdispls:i(*) recvtypes:t(*) comm:c", out, ones, bytes, types, to, ones, bytes, types, WORLD);
    CALL(MPI_Grequest_start, "query_fn:a free_fn:a cancel_fn:a extra_state:a >request:q", query, freed,
         cancelled, &complete, &ours);
    CALL(MPI_Grequest_complete, "request:q", ours);
    wait_for(&ours);
    RESULT("general", complete, to[0]);
    free(to);
}

#if MPI_VERSION >= 4
static void newer(void) {
    MPI_Request requests[4];
    MPI_Status status;
    MPI_Datatype spread;
    MPI_Count counts[4] = {1, 1, 1, 1}, count, integers, addresses, large, types;
    MPI_Aint places[4] = {0, 1, 2, 3};
    int flag, combiner;
    CALL(MPI_Isendrecv, "sendbuf:b sendcount:i sendtype:t dest:r sendtag:g recvbuf:b recvcount:i recvtype:t "
         "source:r recvtag:g comm:c >request:v", out, 1, MPI_INT, right, 81, in, 1, MPI_INT, left, 81, WORLD,
         &requests[0]);
    wait_for(&requests[0]);
    CALL(MPI_Barrier_init, "comm:c info:n >request:q", WORLD, MPI_INFO_NULL, &requests[0]);
    CALL(MPI_Allreduce_init, REDUCED " info:n >request:q", out, in, 2, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL,
         &requests[1]);
    CALL(MPI_Bcast_init, "buffer:b count:i datatype:t root:r comm:c info:n >request:q", in + LENGTH, 2,
         MPI_INT, 0, WORLD, MPI_INFO_NULL, &requests[2]);
    for (int turn = 0; turn < 2; turn++) {
        CALL(MPI_Startall, "count:i ~array_of_requests:q(count)", 3, requests);
        CALL(MPI_Waitall, ALL " >array_of_statuses:s(count)", 3, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 3; i++) CALL(MPI_Request_free, "~request:q", &requests[i]);
    CALL(MPI_Precv_init, "buf:b partitions:i count:j datatype:t source:r tag:g comm:c info:n >request:v", in,
         2, (MPI_Count)3, MPI_INT, left, 82, WORLD, MPI_INFO_NULL, &requests[0]);
    CALL(MPI_Psend_init, "buf:b partitions:i count:j datatype:t dest:r tag:g comm:c info:n >request:q", out,
         2, (MPI_Count)3, MPI_INT, right, 82, WORLD, MPI_INFO_NULL, &requests[1]);
    CALL(MPI_Startall, "count:i ~array_of_requests:q(count)", 2, requests);
    CALL(MPI_Pready, "partition:i request:q", 1, requests[1]);
    CALL(MPI_Pready_list, "length:i array_of_partitions:i(length) request:q", 1, (int[]){0}, requests[1]);
    do CALL(MPI_Parrived, "request:q partition:i >flag:l", requests[0], 1, &flag);
    while (!flag);
    CALL(MPI_Waitall, ALL " >array_of_statuses:s(count)", 2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) CALL(MPI_Request_free, "~request:q", &requests[i]);
    RESULT("partitions", in[0], in[5]);
    /* Large counts. */
    CALL(MPI_Type_vector_c, "count:j blocklength:j stride:j oldtype:t >newtype:t", (MPI_Count)2, (MPI_Count)1,
         (MPI_Count)2, MPI_INT, &spread);
    CALL(MPI_Type_commit, "~datatype:t", &spread);
    CALL(MPI_Type_get_envelope_c, "datatype:t >num_integers:j >num_addresses:j >num_large_counts:j "
         ">num_datatypes:j >combiner:i", spread, &integers, &addresses, &large, &types, &combiner);
    CALL(MPI_Isend_c, "buf:b count:j datatype:t dest:r tag:g comm:c >request:q", out, (MPI_Count)1, spread,
         right, 83, WORLD, &requests[0]);
    CALL(MPI_Recv_c, "buf:b count:j datatype:t source:r tag:g comm:c >status:s", in, (MPI_Count)2, MPI_INT,
         left, 83, WORLD, &status);
    wait_for(&requests[0]);
    CALL(MPI_Get_count_c, "status:s datatype:t >count:j", &status, MPI_INT, &count);
    RESULT("large", integers, addresses, large, types, count, in[1]);
    members = ranks;
    CALL(MPI_Alltoallv_c, "sendbuf:b sendcounts:j(*) sdispls:j(*) sendtype:t recvbuf:b recvcounts:j(*) "
         "rdispls:j(*) recvtype:t comm:c", out, counts, places, MPI_INT, in, counts, places, MPI_INT, WORLD);
    CALL(MPI_Allreduce_c, "sendbuf:b recvbuf:b count:j datatype:t op:o comm:c", MPI_IN_PLACE, in,
         (MPI_Count)1, MPI_INT, MPI_SUM, WORLD);
    RESULT("sum", in[0]);
    free_type(&spread);
}
#endif

int main(int argc, char **argv) {
    begin(argc, argv);
    left = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    for (int i = 0; i < 4 * LENGTH; i++) out[i] = rank + 10 * i;
    layouts();
    type_attributes();
    packing();
    operations();
    modes();
    matched();
    persistent();
    nonblocking_collectives();
#if MPI_VERSION >= 4
    newer();
#endif
    return end();
}
