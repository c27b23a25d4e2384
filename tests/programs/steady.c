/* Exchanges in a ring, a barrier each, as many as it is told, and then an end as it is told.
 *
 * usage: steady TURNS [finalize | exit | kill-1 | late-kill-1 | late-abort-1]
 *   exit      leaves without MPI_Finalize, status 7
 *   kill-1    rank 1 is killed by SIGKILL in the middle, while the others go on
 *   late-     the same, or MPI_Abort, after 1.3 s in which the others wait for it
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank, ranks, turns = argc > 1 ? atoi(argv[1]) : 10, in = 0;
    const char *end = argc > 2 ? argv[2] : "finalize";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < turns; turn++) {
        if (turn == turns / 2 && rank == 1) {
            if (strncmp(end, "late-", 5) == 0) nanosleep(&(struct timespec){1, 300000000}, NULL);
            if (strstr(end, "kill-1")) raise(SIGKILL);
            if (strstr(end, "abort-1")) MPI_Abort(MPI_COMM_WORLD, 6);
        }
        MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    if (rank == 0) {
        printf("%d turns\n", turns);
        fflush(stdout);
    }
    if (strcmp(end, "exit") == 0) exit(7);
    MPI_Finalize();
    return 0;
}
