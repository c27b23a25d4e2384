/* Time steps that the program names itself, and a metric of its own whose values are known beforehand.
 *
 * usage: figure4 STEPS
 *
 * The first half of the ranks does work that differs from rank to rank and from step to step, the
 * second half always the same.
 */
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double work(int rank, int ranks, int step) {
    if (rank >= ranks / 2) return 1000;
    return 1000 + 10 * (rank * 7 % 13) + step % 4 * (rank % 5);
}

int main(int argc, char **argv) {
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 40;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int step = 0; step < steps; step++) {
        ampl_region_begin("TIMESTEP");
        double mine = work(rank, ranks, step), all;
        ampl_metric_add(ampl_metric_register("work"), mine);
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
        ampl_region_end("TIMESTEP");
    }
    if (rank == 0) printf("work %.0f\n", sum);
    MPI_Finalize();
    return 0;
}
