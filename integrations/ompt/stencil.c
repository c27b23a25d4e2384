/*
 * A stencil with two parallel regions of OpenMP: stencil STEPS
 *
 * Rank 0 prints how often they were passed between MPI_Init and MPI_Finalize: `called omp TIMES`.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH 1000

static double line[LENGTH], next[LENGTH];

int main(int argc, char **argv)
{
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 20;
    long passed = 0;
    double norm = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(&line[LENGTH - 2], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &line[0], 1, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int sweep = 0; sweep <= step % 3; sweep++, passed++) {
#pragma omp parallel for num_threads(2)
            for (int at = 1; at < LENGTH - 1; at++)
                next[at] = (line[at - 1] + line[at + 1]) / 2 + rank;
        }
        norm = 0;
        passed++;
#pragma omp parallel for num_threads(2) reduction(+ : norm)
        for (int at = 0; at < LENGTH; at++)
            norm += next[at];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("called omp %ld\nnorm %g\n", passed, norm);
    return 0;
}
