/* Exchanges in a ring, a barrier each; halfway rank 0 has a command run, and the others wait for it.
 *
 * usage: disturbed TURNS COMMAND
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank, ranks, turns = argc > 1 ? atoi(argv[1]) : 10, in = 0, status = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < turns; turn++) {
        if (turn == turns / 2 && rank == 0 && argc > 2) status = system(argv[2]);
        MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    if (rank == 0) printf("%d turns, the command ended with %d\n", turns, status);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
