/* Steps of a ring whose messages shrink with the number of ranks, and of a reduction.
 *
 * usage: scales STEPS [planted]
 *   planted   in each step also an exchange with an argument of an element for each rank, and a gathering
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define ALL 4096

int main(int argc, char **argv) {
    int rank, ranks, steps = atoi(argv[1]), planted = argc > 2 && strcmp(argv[2], "planted") == 0;
    static double out[ALL], in[ALL];
    double own = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *counts = calloc(ranks, sizeof *counts), *places = calloc(ranks, sizeof *places);
    double *all = malloc(ranks * sizeof *all);
    /* Only the right neighbour gets anything. */
    int *sends = calloc(ranks, sizeof *sends);
    sends[(rank + 1) % ranks] = 1;
    counts[(rank + ranks - 1) % ranks] = 1;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(out, ALL / ranks, MPI_DOUBLE, (rank + 1) % ranks, 1, in, ALL / ranks, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (planted) {
            MPI_Alltoallv(out, sends, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
            MPI_Gather(&own, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        }
    }
    free(sends);
    free(counts);
    free(places);
    free(all);
    MPI_Finalize();
    return 0;
}
