/* Calls that repeat, and what may come between them: other words, errors, statuses that are read, calls within calls,
 * pauses, handles that come back with another meaning, windows and files, requests.
 *
 * usage: repeats TURNS
 *
 * What each rank calls follows from its number alone: polls find nothing, whoever is early. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

/* An operation of the program, which calls MPI within MPI_Reduce_local. */
static void add(void *in, void *out, int *count, MPI_Datatype *type) {
    int size;
    MPI_Type_size(*type, &size);
    for (int i = 0; i < *count; i++) ((int *)out)[i] += ((int *)in)[i];
}

static void local_queries(MPI_Comm comm, int turn) {
    int self, size, result, flag;
    MPI_Comm_rank(comm, &self);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(turn % 7 == 6 ? MPI_COMM_SELF : comm, &self);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    MPI_Initialized(&flag);
}

static void messages(int turn) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, in[4], count, flag;
    int length = turn % 5 == 4 ? 3 : 2;
    MPI_Status status;
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(in, length, MPI_INT, right, 2, in + 2, length - 2, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &status);
    MPI_Recv(in, 4, MPI_INT, left, 2, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    for (int poll = 0; poll < turn % 3; poll++)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Iprobe(rank, 98, MPI_COMM_WORLD, &flag, &status);
    MPI_Send(in, 1, MPI_INT, MPI_PROC_NULL, turn % 2, MPI_COMM_WORLD);
    /* Nobody has that rank. */
    if (turn % 9 == 8) MPI_Send(in, 1, MPI_INT, ranks + 1, 0, MPI_COMM_WORLD);
}

static void collectives(int turn, MPI_Op op) {
    int in = rank, out = 0, all[64];
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&out, 1, MPI_INT, turn % ranks, MPI_COMM_WORLD);
    MPI_Reduce_local(&in, &out, 1, MPI_INT, op);
    if (ranks <= 64) MPI_Allgather(&in, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void requests(int turn) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, in[4], flag;
    MPI_Request both[2], one, several[3];
    MPI_Status status, statuses[3];
    MPI_Irecv(in, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    /* Nothing comes before this rank sends it. */
    MPI_Irecv(in, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &one);
    for (int poll = 0; poll <= turn % 4; poll++) MPI_Test(&one, &flag, turn % 2 ? &status : MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_SELF);
    MPI_Wait(&one, &status);
    MPI_Test(&one, &flag, &status);
    /* Polls of several, whose number and order change, null ones among them. */
    for (int i = 0; i < 3; i++)
        if (i < 1 + turn % 3) MPI_Irecv(&in[i], 1, MPI_INT, 0, 10 + i, MPI_COMM_SELF, &several[(i + turn) % 3]);
        else several[(i + turn) % 3] = MPI_REQUEST_NULL;
    for (int poll = 0; poll <= turn % 4; poll++) {
        int done, indices[3];
        MPI_Testsome(3, several, &done, indices, turn % 2 ? statuses : MPI_STATUSES_IGNORE);
        MPI_Testall(3, several, &flag, MPI_STATUSES_IGNORE);
        MPI_Testany(3, several, &done, &flag, poll % 2 ? &status : MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 1 + turn % 3; i++) MPI_Send(&rank, 1, MPI_INT, 0, 10 + i, MPI_COMM_SELF);
    MPI_Waitall(3, several, MPI_STATUSES_IGNORE);
    /* Equal ones, of which several are live, in an order that changes. */
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, i < 1 + turn % 3 ? 0 : MPI_PROC_NULL, 5, MPI_COMM_SELF, &several[i]);
    for (int i = 0; i < 1 + turn % 3; i++) MPI_Send(&rank, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
    for (int i = 0; i < 3; i++) MPI_Wait(&several[(i + turn) % 3], MPI_STATUS_IGNORE);
    MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 1;
    double shared = 0, *memory;
    MPI_Comm comm;
    MPI_Op op;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Op_create(add, 1, &op);
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < turns; turn++) {
        /* Its handle may come back, for another one. */
        if (turn % 16 == 15) {
            MPI_Comm_free(&comm);
            MPI_Comm_split(MPI_COMM_WORLD, turn % 32 == 31 ? rank % 2 : 0, -rank, &comm);
        }
        local_queries(comm, turn);
        messages(turn);
        collectives(turn, op);
        requests(turn);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&shared, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
        MPI_Win_unlock(0, win);
        if (turn % 20 == 11) MPI_Pcontrol(0);
        if (turn % 20 == 13) MPI_Pcontrol(1);
    }
    MPI_Comm_free(&comm);
    MPI_Win_free(&win);
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
