/* Point-to-point, collectives, communicators, datatypes and persistent requests, each call logged.
 *
 * usage: p2p_coll [LOG]   writes its calls and then its counts to LOG.<rank>; prints, per rank, a
 * checksum of what it received. Runs on any number of ranks.
 */
#include "record.h"

#define WORLD MPI_COMM_WORLD

static int rank, ranks, left, right;
static long checksum;

static void sum_up(const int *values, int count) {
    for (int i = 0; i < count; i++) checksum = (checksum * 31 + values[i]) % 1000003;
}

/* ---- requests by number ------------------------------------------------------------------- */

#define MOST_REQUESTS 16
static struct { MPI_Request handle; int number; } live[MOST_REQUESTS];

static int made_request(MPI_Request handle) {
    int slot = -1, number = new_number();
    for (int i = 0; i < MOST_REQUESTS; i++) {
        if (!live[i].number) { if (slot < 0) slot = i; }
        else if (live[i].handle == handle && log_file) shared_requests(live[i].number, number);
    }
    if (slot < 0) { fprintf(stderr, "p2p_coll: MOST_REQUESTS is too small\n"); exit(9); }
    live[slot].handle = handle;
    return live[slot].number = number;
}

/* The number of a request after completion: 0 and forgotten if MPI made the handle null. */
static int after(MPI_Request handle, int number) {
    if (handle != MPI_REQUEST_NULL) return number;
    for (int i = 0; i < MOST_REQUESTS; i++)
        if (live[i].number == number) live[i].number = 0;
    return 0;
}

/* ---- logged calls used in several places --------------------------------------------------- */

static void barrier(MPI_Comm comm) {
    MPI_Barrier(comm);
    record("MPI_Barrier", "comm:c", comm);
}

static void send_to(void *data, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    MPI_Send(data, count, type, dest, tag, comm);
    record("MPI_Send", "buf:b count:i datatype:t dest:r tag:g comm:c", data, count, type, dest, tag, comm);
}

static void receive(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Recv(data, count, type, source, tag, comm, status ? status : MPI_STATUS_IGNORE);
    record("MPI_Recv", "buf:b count:i datatype:t source:r tag:g comm:c | status:s",
           data, count, type, source, tag, comm, status);
}

static void exchange(void *out, int out_count, MPI_Datatype out_type, int dest, int out_tag,
                     void *in, int in_count, MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm,
                     MPI_Status *status) {
    MPI_Sendrecv(out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm,
                 status ? status : MPI_STATUS_IGNORE);
    record("MPI_Sendrecv",
           "sendbuf:b sendcount:i sendtype:t dest:r sendtag:g recvbuf:b recvcount:i recvtype:t source:r recvtag:g "
           "comm:c | status:s",
           out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, status);
}

static int isend(void *data, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
    MPI_Isend(data, count, type, dest, tag, comm, request);
    int number = made_request(*request);
    record("MPI_Isend", "buf:b count:i datatype:t dest:r tag:g comm:c | request:q",
           data, count, type, dest, tag, comm, number);
    return number;
}

static int ireceive(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    MPI_Irecv(data, count, type, source, tag, comm, request);
    int number = made_request(*request);
    record("MPI_Irecv", "buf:b count:i datatype:t source:r tag:g comm:c | request:q",
           data, count, type, source, tag, comm, number);
    return number;
}

/* `sent`: the request belongs to a send, whose status says nothing. */
static int wait_for(MPI_Request *request, int number, int sent, int with_status) {
    MPI_Status status;
    MPI_Wait(request, with_status ? &status : MPI_STATUS_IGNORE);
    if (sent) status.MPI_SOURCE = UNKNOWN;
    int now = after(*request, number);
    record("MPI_Wait", "request:q | request:q status:s", number, now, with_status ? &status : NULL);
    return now;
}

static int test(MPI_Request *request, int *number, int sent) {
    MPI_Status status;
    int flag, was = *number;
    MPI_Test(request, &flag, &status);
    if (sent) status.MPI_SOURCE = UNKNOWN;
    *number = after(*request, was);
    if (flag) record("MPI_Test", "request:q | request:q flag:l status:s", was, *number, 1, &status);
    else record("MPI_Test", "request:q | request:q flag:l status:?", was, *number, 0);
    return flag;
}

static int wait_all(int count, MPI_Request *requests, int *numbers, const int *sends, int with_statuses) {
    MPI_Status statuses[MOST_REQUESTS];
    int before[MOST_REQUESTS];
    memcpy(before, numbers, count * sizeof(int));
    int code = MPI_Waitall(count, requests, with_statuses ? statuses : MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        if (sends[i]) statuses[i].MPI_SOURCE = UNKNOWN;
        numbers[i] = after(requests[i], numbers[i]);
    }
    if (with_statuses)
        record("MPI_Waitall", "count:i array_of_requests:Q | array_of_requests:Q array_of_statuses:S",
               count, count, before, count, numbers, count, statuses);
    else
        record("MPI_Waitall", "count:i array_of_requests:Q | array_of_requests:Q array_of_statuses:s",
               count, count, before, count, numbers, NULL);
    return code;
}

/* ---- point-to-point ------------------------------------------------------------------------ */

static void blocking(void) {
    int out[8], in[8];
    MPI_Status status;
    for (int i = 0; i < 8; i++) out[i] = 100 * rank + i;
    if (ranks > 1) {
        /* Rank 0 starts the ring, so it cannot lock whatever MPI buffers. */
        if (rank == 0) send_to(out, 8, MPI_INT, right, 11, WORLD);
        receive(in, 8, MPI_INT, left, 11, WORLD, rank % 2 ? NULL : &status);
        if (rank != 0) send_to(out, 8, MPI_INT, right, 11, WORLD);
        sum_up(in, 8);
        /* Wildcards with and without a status: the sender says who it is. */
        if (rank == 0) {
            for (int i = 1; i < ranks; i++) {
                receive(in, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, i % 2 ? &status : NULL);
                int count;
                if (i % 2) {
                    MPI_Get_count(&status, MPI_INT, &count);
                    record("MPI_Get_count", "status:s datatype:t | count:i", &status, MPI_INT, count);
                    if (count != status.MPI_SOURCE % 3 + 1) exit(9);
                }
            }
        } else {
            send_to(out, rank % 3 + 1, MPI_INT, 0, 200 + rank, WORLD);
        }
        /* Nothing that comes later may match the wildcards. */
        barrier(WORLD);
    }
    /* Nobody: source, tag and count of the status are defined. */
    send_to(out, 3, MPI_INT, MPI_PROC_NULL, 5, WORLD);
    receive(in, 3, MPI_INT, MPI_PROC_NULL, 5, WORLD, &status);
    exchange(out, 4, MPI_INT, right, 21, in, 8, MPI_INT, left, MPI_ANY_TAG, WORLD, &status);
    sum_up(in, 4);
    exchange(out, 2, MPI_INT, MPI_PROC_NULL, 22, in, 2, MPI_INT, MPI_PROC_NULL, 22, WORLD, NULL);
    barrier(WORLD);
}

static void nonblocking(void) {
    enum { LONG = 40000 };  /* beyond what is sent eagerly */
    static int out[LONG], in[LONG];
    int small_out[4] = {rank, 2, 3, 4}, small_in[4];
    MPI_Request requests[4];
    int numbers[4];
    for (int i = 0; i < LONG; i++) out[i] = rank + i;
    for (int with_statuses = 0; with_statuses < 2; with_statuses++) {
        numbers[0] = ireceive(in, LONG, MPI_INT, left, 31, WORLD, &requests[0]);
        numbers[1] = ireceive(small_in, 4, MPI_INT, MPI_ANY_SOURCE, 32, WORLD, &requests[1]);
        numbers[2] = isend(out, LONG, MPI_INT, right, 31, WORLD, &requests[2]);
        numbers[3] = isend(small_out, 4, MPI_INT, right, 32, WORLD, &requests[3]);
        wait_all(4, requests, numbers, (const int[]){0, 0, 1, 1}, with_statuses);
        sum_up(in, LONG);
        sum_up(small_in, 4);
    }
    /* Waitany until nothing is left, and once more: index is MPI_UNDEFINED. */
    numbers[0] = ireceive(in, 100, MPI_INT, left, 33, WORLD, &requests[0]);
    numbers[1] = ireceive(small_in, 4, MPI_INT, left, 34, WORLD, &requests[1]);
    numbers[2] = isend(out, 100, MPI_INT, right, 33, WORLD, &requests[2]);
    numbers[3] = isend(small_out, 4, MPI_INT, right, 34, WORLD, &requests[3]);
    for (int turn = 0; turn < 5; turn++) {
        MPI_Status status;
        int index, before[4];
        memcpy(before, numbers, sizeof before);
        MPI_Waitany(4, requests, &index, &status);
        if (index == 2 || index == 3) status.MPI_SOURCE = UNKNOWN;
        if (index != MPI_UNDEFINED) numbers[index] = after(requests[index], numbers[index]);
        record("MPI_Waitany", "count:i array_of_requests:Q | array_of_requests:Q index:u status:s",
               4, 4, before, 4, numbers, index, &status);
    }
    sum_up(in, 100);
    sum_up(small_in, 4);
    /* A receive and a send that nobody answers, one after the other. */
    numbers[0] = ireceive(in, 1, MPI_INT, MPI_PROC_NULL, 35, WORLD, &requests[0]);
    wait_for(&requests[0], numbers[0], 0, 1);
    numbers[0] = isend(out, 1, MPI_INT, MPI_PROC_NULL, 35, WORLD, &requests[0]);
    wait_for(&requests[0], numbers[0], 1, 0);
    barrier(WORLD);
}

static void polling(void) {
    int out[4] = {rank, rank + 1, rank + 2, rank + 3}, in[4], flag;
    MPI_Request request, answer;
    MPI_Status status;
    int answer_number;
    int number = ireceive(in, 4, MPI_INT, left, 41, WORLD, &request);
    for (int i = 0; i < 3 && number; i++) test(&request, &number, 0);
    answer_number = isend(out, 4, MPI_INT, right, 41, WORLD, &answer);
    while (number) test(&request, &number, 0);
    while (answer_number) test(&answer, &answer_number, 1);
    sum_up(in, 4);
    /* Iprobe: three looks before the message can have been sent by a lone rank, then until it is there. */
    for (int i = 0; i < 3; i++) {
        MPI_Iprobe(left, 43, WORLD, &flag, MPI_STATUS_IGNORE);
        record("MPI_Iprobe", "source:r tag:g comm:c | flag:l status:?", left, 43, WORLD, flag);
    }
    answer_number = isend(out, 3, MPI_INT, right, 42, WORLD, &answer);
    do {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, &status);
        if (flag)
            record("MPI_Iprobe", "source:r tag:g comm:c | flag:l status:s", MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, 1, &status);
        else
            record("MPI_Iprobe", "source:r tag:g comm:c | flag:l status:?", MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, 0);
    } while (!flag);
    receive(in, 4, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, WORLD, &status);
    wait_for(&answer, answer_number, 1, 1);
    sum_up(in, 3);
    barrier(WORLD);
}

static void persistent(void) {
    int out[6], in[6];
    MPI_Request requests[2];
    int numbers[2];
    MPI_Recv_init(in, 6, MPI_INT, left, 51, WORLD, &requests[0]);
    numbers[0] = made_request(requests[0]);
    record("MPI_Recv_init", "buf:b count:i datatype:t source:r tag:g comm:c | request:q",
           in, 6, MPI_INT, left, 51, WORLD, numbers[0]);
    MPI_Send_init(out, 6, MPI_INT, right, 51, WORLD, &requests[1]);
    numbers[1] = made_request(requests[1]);
    record("MPI_Send_init", "buf:b count:i datatype:t dest:r tag:g comm:c | request:q",
           out, 6, MPI_INT, right, 51, WORLD, numbers[1]);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 6; i++) out[i] = rank * turn + i;
        if (turn == 0) {
            for (int i = 0; i < 2; i++) {
                MPI_Start(&requests[i]);
                record("MPI_Start", "request:q | request:q", numbers[i], numbers[i]);
            }
        } else {
            MPI_Startall(2, requests);
            record("MPI_Startall", "count:i array_of_requests:Q | array_of_requests:Q", 2, 2, numbers, 2, numbers);
        }
        wait_all(2, requests, numbers, (const int[]){0, 1}, 1);
        sum_up(in, 6);
    }
    for (int i = 0; i < 2; i++) {
        int was = numbers[i];
        MPI_Request_free(&requests[i]);
        numbers[i] = after(requests[i], was);
        record("MPI_Request_free", "request:q | request:q", was, numbers[i]);
    }
    barrier(WORLD);
}

/* ---- collectives --------------------------------------------------------------------------- */

static void collectives(void) {
    int *out = calloc(ranks * (ranks + 4), sizeof(int)), *in = calloc(ranks * (ranks + 4), sizeof(int));
    int *counts = calloc(ranks, sizeof(int)), *places = calloc(ranks, sizeof(int)), *ones = calloc(ranks, sizeof(int));
    int root = ranks - 1, total = 0;
    double part[2] = {rank, rank * 2.0}, whole[2];
    for (int i = 0; i < ranks; i++) { counts[i] = i + 1; places[i] = total; total += i + 1; ones[i] = 1; }
    for (int i = 0; i < total; i++) out[i] = rank * 7 + i;
    MPI_Bcast(out, 3, MPI_INT, 0, WORLD);
    record("MPI_Bcast", "buffer:b count:i datatype:t root:r comm:c", out, 3, MPI_INT, 0, WORLD);
    MPI_Reduce(part, whole, 2, MPI_DOUBLE, MPI_MAX, root, WORLD);
    if (rank == root)
        record("MPI_Reduce", "sendbuf:b recvbuf:b count:i datatype:t op:o root:r comm:c",
               part, whole, 2, MPI_DOUBLE, MPI_MAX, root, WORLD);
    else
        record("MPI_Reduce", "sendbuf:b recvbuf:? count:i datatype:t op:o root:r comm:c",
               part, 2, MPI_DOUBLE, MPI_MAX, root, WORLD);
    MPI_Allreduce(part, whole, 2, MPI_DOUBLE, MPI_SUM, WORLD);
    record("MPI_Allreduce", "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c",
           part, whole, 2, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Allreduce(MPI_IN_PLACE, whole, 2, MPI_DOUBLE, MPI_SUM, WORLD);
    record("MPI_Allreduce", "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c",
           MPI_IN_PLACE, whole, 2, MPI_DOUBLE, MPI_SUM, WORLD);
    checksum += (long)whole[0];
    MPI_Scan(out, in, 3, MPI_INT, MPI_SUM, WORLD);
    record("MPI_Scan", "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c", out, in, 3, MPI_INT, MPI_SUM, WORLD);
    sum_up(in, 3);
    MPI_Gather(out, 2, MPI_INT, in, 2, MPI_INT, root, WORLD);
    if (rank == root)
        record("MPI_Gather", "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t root:r comm:c",
               out, 2, MPI_INT, in, 2, MPI_INT, root, WORLD);
    else
        record("MPI_Gather", "sendbuf:b sendcount:i sendtype:t recvbuf:? recvcount:? recvtype:? root:r comm:c",
               out, 2, MPI_INT, root, WORLD);
    MPI_Gatherv(out, rank + 1, MPI_INT, in, counts, places, MPI_INT, 0, WORLD);
    if (rank == 0)
        record("MPI_Gatherv",
               "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:I displs:I recvtype:t root:r comm:c",
               out, rank + 1, MPI_INT, in, ranks, counts, ranks, places, MPI_INT, 0, WORLD);
    else
        record("MPI_Gatherv",
               "sendbuf:b sendcount:i sendtype:t recvbuf:? recvcounts:? displs:? recvtype:? root:r comm:c",
               out, rank + 1, MPI_INT, 0, WORLD);
    MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, 0, WORLD);
    if (rank == 0)
        record("MPI_Scatter", "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t root:r comm:c",
               out, 1, MPI_INT, in, 1, MPI_INT, 0, WORLD);
    else
        record("MPI_Scatter", "sendbuf:? sendcount:? sendtype:? recvbuf:b recvcount:i recvtype:t root:r comm:c",
               in, 1, MPI_INT, 0, WORLD);
    MPI_Scatterv(out, counts, places, MPI_INT, in, rank + 1, MPI_INT, root, WORLD);
    if (rank == root)
        record("MPI_Scatterv",
               "sendbuf:b sendcounts:I displs:I sendtype:t recvbuf:b recvcount:i recvtype:t root:r comm:c",
               out, ranks, counts, ranks, places, MPI_INT, in, rank + 1, MPI_INT, root, WORLD);
    else
        record("MPI_Scatterv",
               "sendbuf:? sendcounts:? displs:? sendtype:? recvbuf:b recvcount:i recvtype:t root:r comm:c",
               in, rank + 1, MPI_INT, root, WORLD);
    sum_up(in, rank + 1);
    MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, WORLD);
    record("MPI_Allgather", "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c",
           out, 1, MPI_INT, in, 1, MPI_INT, WORLD);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, WORLD);
    record("MPI_Alltoall", "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c",
           out, 1, MPI_INT, in, 1, MPI_INT, WORLD);
    sum_up(in, ranks);
    for (int i = 0; i < ranks; i++) places[i] = i;
    MPI_Alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, WORLD);
    record("MPI_Alltoallv",
           "sendbuf:b sendcounts:I sdispls:I sendtype:t recvbuf:b recvcounts:I rdispls:I recvtype:t comm:c",
           out, ranks, ones, ranks, places, MPI_INT, in, ranks, ones, ranks, places, MPI_INT, WORLD);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, WORLD);
    record("MPI_Reduce_scatter", "sendbuf:b recvbuf:b recvcounts:I datatype:t op:o comm:c",
           out, in, ranks, counts, MPI_INT, MPI_SUM, WORLD);
    sum_up(in, rank + 1);
    free(out); free(in); free(counts); free(places); free(ones);
}

/* ---- communicators and datatypes ----------------------------------------------------------- */

static void free_comm(MPI_Comm *comm) {
    MPI_Comm was = *comm;
    MPI_Comm_free(comm);
    record("MPI_Comm_free", "comm:c | comm:c", was, *comm);
    freed_comm(number_of_comm(was));
}

static void free_group(MPI_Group *group) {
    MPI_Group was = *group;
    MPI_Group_free(group);
    record("MPI_Group_free", "group:p | group:p", was, *group);
    freed_group(number_of_group(was));
}

static void communicators(void) {
    MPI_Comm copy, half, few, cart;
    int mine, size, value = rank;
    MPI_Comm_dup(WORLD, &copy);
    made_comm(copy);
    record("MPI_Comm_dup", "comm:c | newcomm:c", WORLD, copy);
    barrier(copy);
    /* The last rank stays out. */
    int color = rank == ranks - 1 ? MPI_UNDEFINED : rank % 2;
    MPI_Comm_split(copy, color, -rank, &half);
    if (half != MPI_COMM_NULL) made_comm(half);
    record("MPI_Comm_split", "comm:c color:u key:i | newcomm:c", copy, color, -rank, half);
    if (half != MPI_COMM_NULL) {
        MPI_Comm_rank(half, &mine);
        record("MPI_Comm_rank", "comm:c | rank:r", half, mine);
        MPI_Comm_size(half, &size);
        record("MPI_Comm_size", "comm:c | size:i", half, size);
        MPI_Bcast(&value, 1, MPI_INT, size - 1, half);
        record("MPI_Bcast", "buffer:b count:i datatype:t root:r comm:c", &value, 1, MPI_INT, size - 1, half);
        free_comm(&half);
    }
    MPI_Group all, some;
    MPI_Comm_group(copy, &all);
    made_group(all);
    record("MPI_Comm_group", "comm:c | group:p", copy, all);
    int chosen[2] = {0, ranks - 1}, number_chosen = ranks > 1 ? 2 : 1;
    MPI_Group_incl(all, number_chosen, chosen, &some);
    made_group(some);
    record("MPI_Group_incl", "group:p n:i ranks:I | newgroup:p", all, number_chosen, number_chosen, chosen, some);
    MPI_Comm_create(copy, some, &few);
    if (few != MPI_COMM_NULL) made_comm(few);
    record("MPI_Comm_create", "comm:c group:p | newcomm:c", copy, some, few);
    if (few != MPI_COMM_NULL) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, few);
        record("MPI_Allreduce", "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c",
               MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, few);
        free_comm(&few);
    }
    free_group(&some);
    free_group(&all);
    int dims[2] = {ranks, 1}, periods[2] = {0, 1}, place[2], source, dest;
    MPI_Cart_create(WORLD, 2, dims, periods, 0, &cart);
    made_comm(cart);
    record("MPI_Cart_create", "comm_old:c ndims:i dims:I periods:L reorder:l | comm_cart:c",
           WORLD, 2, 2, dims, 2, periods, 0, cart);
    MPI_Cart_coords(cart, rank, 2, place);
    record("MPI_Cart_coords", "comm:c rank:r maxdims:i | coords:I", cart, rank, 2, 2, place);
    MPI_Cart_shift(cart, 0, 1, &source, &dest);
    record("MPI_Cart_shift", "comm:c direction:i disp:i | rank_source:r rank_dest:r", cart, 0, 1, source, dest);
    MPI_Status status;
    exchange(&rank, 1, MPI_INT, dest, 61, &value, 1, MPI_INT, source, 61, cart, &status);
    sum_up(&value, 1);
    free_comm(&cart);
    /* A handle that may come again means another communicator now. */
    MPI_Comm_dup(copy, &half);
    made_comm(half);
    record("MPI_Comm_dup", "comm:c | newcomm:c", copy, half);
    barrier(half);
    free_comm(&half);
    free_comm(&copy);
    barrier(MPI_COMM_SELF);
}

static void datatypes(void) {
    struct cell { double energy; int where[3]; } cells[2] = {{rank, {1, 2, 3}}, {0, {0, 0, 0}}};
    double square[16] = {0}, column[4];
    int lengths[2] = {1, 3};
    MPI_Aint offsets[2] = {0, sizeof(double)};
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_INT}, strided, cell, pair;
    MPI_Status status;
    MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &strided);
    made_type(strided);
    record("MPI_Type_vector", "count:i blocklength:i stride:i oldtype:t | newtype:t", 4, 1, 4, MPI_DOUBLE, strided);
    MPI_Type_create_struct(2, lengths, offsets, parts, &cell);
    made_type(cell);
    record("MPI_Type_create_struct",
           "count:i array_of_blocklengths:I array_of_displacements:A array_of_types:T | newtype:t",
           2, 2, lengths, 2, offsets, 2, parts, cell);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    made_type(pair);
    record("MPI_Type_contiguous", "count:i oldtype:t | newtype:t", 2, MPI_INT, pair);
    MPI_Datatype *made[3] = {&strided, &cell, &pair};
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(made[i]);
        record("MPI_Type_commit", "datatype:t | datatype:t", *made[i], *made[i]);
    }
    exchange(square, 1, strided, right, 71, column, 4, MPI_DOUBLE, left, 71, WORLD, &status);
    exchange(&cells[0], 1, cell, right, 72, &cells[1], 1, cell, left, 72, WORLD, &status);
    checksum += (long)cells[1].energy;
    MPI_Bcast(cells[0].where, 1, pair, 0, WORLD);
    record("MPI_Bcast", "buffer:b count:i datatype:t root:r comm:c", cells[0].where, 1, pair, 0, WORLD);
    for (int i = 0; i < 3; i++) {
        MPI_Datatype was = *made[i];
        MPI_Type_free(made[i]);
        record("MPI_Type_free", "datatype:t | datatype:t", was, *made[i]);
        freed_type(number_of_type(was));
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    if (argc > 1) {
        char path[4096];
        snprintf(path, sizeof path, "%s.%d", argv[1], rank);
        log_file = fopen(path, "w");
        if (!log_file) { perror(path); return 9; }
    }
    record("MPI_Init", "argc:a argv:a", &argc, &argv);
    record("MPI_Comm_rank", "comm:c | rank:r", WORLD, rank);
    MPI_Comm_size(WORLD, &ranks);
    record("MPI_Comm_size", "comm:c | size:i", WORLD, ranks);
    left = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    blocking();
    nonblocking();
    polling();
    persistent();
    collectives();
    communicators();
    datatypes();
    MPI_Finalize();
    record("MPI_Finalize", "");
    if (log_file) {
        print_counts(log_file, rank);
        fclose(log_file);
    }
    printf("rank %d of %d: %ld\n", rank, ranks, checksum);
    return 0;
}
