/* Calls that are not recorded: before MPI_Init, in a pause, within another call, and more than may be.
 *
 * usage: skips CALLS [dies]
 *   CALLS  messages to nobody that are sent in a row, and as many received
 *   dies   the last rank is killed behind them, and the others wait for it
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rank, ranks;

static int within(MPI_Comm comm, int key, void *value, void *extra) {
    int size;
    (void)key, (void)value, (void)extra;
    return MPI_Comm_size(comm, &size);
}

/* A step of a program that also looks for messages, as many times as is `polls`. */
static void step(int polls) {
    int in, flag, left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 5, &in, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int poll = 0; poll < polls; poll++)
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 0;
    int started, key;
    double word = 0;
    MPI_Comm copy;
    MPI_Initialized(&started);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 20; turn++) step(turn % 3);
    MPI_Pcontrol(0);
    for (int turn = 0; turn < 10; turn++) step(1);
    MPI_Pcontrol(1);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, within, &key, NULL);
    MPI_Comm_set_attr(copy, key, NULL);
    MPI_Comm_free(&copy);
    for (long call = 0; call < calls; call++) {
        MPI_Send(&word, 1, MPI_DOUBLE, MPI_PROC_NULL, 7, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_DOUBLE, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (argc > 2) {
        if (rank == ranks - 1) kill(getpid(), SIGKILL);
        MPI_Recv(&word, 1, MPI_DOUBLE, ranks - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    word = MPI_Wtime();
    for (int turn = 0; turn < 20; turn++) step(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return word < 0;
}
