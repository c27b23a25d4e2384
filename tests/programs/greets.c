/* Collectives from the first call on, of which every rank prints what it got.
 *
 * usage: greets [MILLISECONDS]: rank 1 sleeps so long before MPI_Init
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank, ranks, word, all[64], sum = 0;
    const char *said = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    long pause = argc > 1 ? atol(argv[1]) : 0;
    if (said && atoi(said) == 1 && pause > 0)
        nanosleep(&(struct timespec){pause / 1000, pause % 1000 * 1000000}, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    word = 100 + rank;
    MPI_Bcast(&word, 1, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) sum += (from + 1) * all[from];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: word %d, sum %d\n", rank, ranks, word, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
