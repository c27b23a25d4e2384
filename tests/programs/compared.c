/* Steps of a barrier and a ring, in which ranks sleep; two builds of it differ by variables.
 *
 * usage: compared STEPS MICROSECONDS
 *   COMPARED_SLOW=PERCENT   ranks of the upper half sleep so much longer
 *   COMPARED_MORE=1         rank 0 sends one more message in each step
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int variable(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

int main(int argc, char **argv) {
    int rank, ranks, steps = atoi(argv[1]), in = 0;
    long sleep_ns = 1000L * atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* The halves differ anyway, so that they are strata. */
    if (rank < ranks / 2) sleep_ns = sleep_ns / 2;
    else sleep_ns += sleep_ns * variable("COMPARED_SLOW") / 100;
    int more = variable("COMPARED_MORE");
    for (int step = 0; step < steps; step++) {
        nanosleep(&(struct timespec){sleep_ns / 1000000000L, sleep_ns % 1000000000L}, NULL);
        MPI_Sendrecv(&step, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (more && rank == 0) MPI_Send(&step, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        if (more && rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
