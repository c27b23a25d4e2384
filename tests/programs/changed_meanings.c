/* The same lines call MPI with the same words again and again while what the words mean changes, each call logged.
 *
 * usage: changed_meanings [LOG]   writes its calls and then its counts to LOG.<rank>; prints results.
 * Runs on 1 to 4 ranks. Rank 0 tells how many bytes it has moved by MPI_Bcast.
 */
#include "call.h"

#define WORLD MPI_COMM_WORLD
#define TURNS 24
#define TIMES 5  /* until a call is known well */

static int cells[64];

static void broadcast(MPI_Datatype type, MPI_Comm comm) {
    CALL(MPI_Bcast, "buffer:b count:i datatype:t root:r comm:c", cells, 2, type, 0, comm);
}

/* MPI gives a handle again whose datatype is gone: another size. */
static void types(void) {
    long bytes = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Datatype type;
        int length = 1 + turn % 3;
        CALL(MPI_Type_contiguous, "count:i oldtype:t >newtype:t", length, MPI_INT, &type);
        CALL(MPI_Type_commit, "~datatype:t", &type);
        for (int i = 0; i < TIMES; i++) broadcast(type, WORLD), bytes += 8 * length;
        CALL(MPI_Type_free, "~datatype:t", &type);
    }
    RESULT("broadcast", bytes);
}

/* The same with communicators, of one rank and of all. */
static void communicators(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Comm comm;
        if (turn % 3) CALL(MPI_Comm_dup, "comm:c >newcomm:c", turn % 2 ? WORLD : MPI_COMM_SELF, &comm);
        else CALL(MPI_Comm_split, "comm:c color:u key:i >newcomm:c", WORLD, rank % 2, 0, &comm);
        for (int i = 0; i < TIMES; i++) {
            int sum = 0;
            CALL(MPI_Barrier, "comm:c", comm);
            CALL(MPI_Allreduce, "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c", &rank, &sum, 1, MPI_INT,
                 MPI_SUM, comm);
        }
        CALL(MPI_Comm_free, "~comm:c", &comm);
    }
}

static void add(void *from, void *to, int *count, MPI_Datatype *type) {
    for (int i = 0; (void)type, i < *count; i++) ((int *)to)[i] += ((int *)from)[i];
}

static void operations(void) {
    int sum = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Op op;
        CALL(MPI_Op_create, "user_fn:a commute:l >op:o", add, turn % 2, &op);
        for (int i = 0; i < TIMES; i++)
            CALL(MPI_Allreduce, "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c", &rank, &sum, 1, MPI_INT, op,
                 WORLD);
        CALL(MPI_Op_free, "~op:o", &op);
    }
    RESULT("added", sum);
}

/* As many live at once as the turn says: the same call makes the first of its kind, the second, a third. */
static void requests(void) {
    MPI_Request all[8];
    MPI_Status statuses[8];
    for (int turn = 0; turn < TURNS; turn++) {
        int live = turn < TIMES ? 1 : 1 + turn % 4;
        for (int i = 0; i < live; i++)
            CALL(MPI_Irecv, "buf:b count:i datatype:t source:r tag:g comm:c >request:v", cells + 32, 1, MPI_INT,
                 rank, 3, WORLD, &all[i]);
        for (int i = 0; i < live; i++)
            CALL(MPI_Isend, "buf:b count:i datatype:t dest:r tag:g comm:c >request:q", cells, 1, MPI_INT, rank, 3,
                 WORLD, &all[live + i]);
        CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 2 * live, all,
             statuses);
    }
}

/* Nobody is there: what MPI makes of it is its own. */
static void nobody(void) {
    MPI_Request request;
    for (int turn = 0; turn < TURNS; turn++) {
        CALL(MPI_Isend, "buf:b count:i datatype:t dest:r tag:g comm:c >request:q", cells, 1, MPI_INT, MPI_PROC_NULL,
             3, WORLD, &request);
        CALL(MPI_Wait, "~request:q >status:s", &request, MPI_STATUS_IGNORE);
        CALL(MPI_Send, "buf:b count:i datatype:t dest:r tag:g comm:c", cells, 1, MPI_INT, MPI_PROC_NULL, 3, WORLD);
    }
}

/* What a receive has got is said by its words where these name a source and a tag, and by nothing else otherwise.
 * MPICH 5.0.2 loses the error of a message too long that is received from anybody while others are under way in another
 * communicator: without ampl one in eleven of 65,278, none from a named source. */
static void receives(void) {
    enum { SENT = 12 };
    int tags = 0, cut = 0, draw = 1;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        int source = turn % 5 ? rank : MPI_ANY_SOURCE, tag = turn % 3 ? MPI_ANY_TAG : 3;
        MPI_Request requests[SENT];
        MPI_Status statuses[SENT], own, *status = turn % 2 ? &own : MPI_STATUS_IGNORE;
        for (int i = 0; i < SENT; i++) {
            draw = draw * 75 % 65537;  /* ZX81's generator */
            int sent = tag == 3 ? 3 : draw / 16 % 2, longer = turn > TURNS && draw / 64 % 11 == 0;
            if (source == MPI_ANY_SOURCE && MPI_VERSION >= 5) longer = 0;
            CALL(MPI_Isend, "buf:b count:i datatype:t dest:r tag:g comm:c >request:q", cells, 1 + longer, MPI_INT, rank,
                 sent, WORLD, &requests[i]);
        }
        for (int i = 0; i < SENT; i++) {
            int code = CALL(MPI_Recv, "buf:b count:i datatype:t source:r tag:g comm:c >status:s", cells + 32, 1,
                            MPI_INT, source, tag, WORLD, status);
            if (code) cut++;
            else if (turn % 2) tags += own.MPI_TAG;
        }
        CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", SENT, requests, statuses);
        for (int i = 0; i < TIMES; i++) {
            CALL(MPI_Sendrecv,
                 "sendbuf:b sendcount:i sendtype:t dest:r sendtag:g recvbuf:b recvcount:i recvtype:t source:r "
                 "recvtag:g comm:c >status:s",
                 cells, 1, MPI_INT, rank, tag == 3 ? 3 : i % 2, cells + 32, 1, MPI_INT, rank, tag, WORLD, status);
            CALL(MPI_Recv, "buf:b count:i datatype:t source:r tag:g comm:c >status:s", cells + 32, 1, MPI_INT,
                 MPI_PROC_NULL, tag, WORLD, status);
        }
    }
    RESULT("tags", tags);
    RESULT("cut", cut);
}

static int refused, may;

static int deleted(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    return may ? MPI_SUCCESS : (refused++, MPI_ERR_OTHER);
}

/* The same call fails and succeeds in turns. */
static void failures(void) {
    int key;
    CALL(MPI_Comm_create_keyval, "comm_copy_attr_fn:a comm_delete_attr_fn:a >comm_keyval:i extra_state:a",
         MPI_COMM_NULL_COPY_FN, deleted, &key, NULL);
    for (int turn = 0; turn < TURNS; turn++) {
        may = turn < TIMES || turn % 3 == 0;
        CALL(MPI_Comm_set_attr, "comm:c comm_keyval:i attribute_val:a", WORLD, key, cells);
        CALL(MPI_Comm_delete_attr, "comm:c comm_keyval:i", WORLD, key);
        may = 1;
        CALL(MPI_Comm_delete_attr, "comm:c comm_keyval:i", WORLD, key);
    }
    RESULT("refused", refused);
    CALL(MPI_Comm_free_keyval, "~comm_keyval:i", &key);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", WORLD, MPI_ERRORS_RETURN);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", MPI_COMM_SELF, MPI_ERRORS_RETURN);
    types();
    communicators();
    operations();
    requests();
    nobody();
    receives();
    failures();
    return end();
}
