/* A little of everything that the recipes in configs/ name: time steps as a region, a metric of its own, messages,
 * polls, a barrier and a reduction in each step.
 *
 * usage: recipes MILLISECONDS
 *
 * Rank 0 prints how many steps there were.
 */
#define _POSIX_C_SOURCE 200809L
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = 500 };

int main(int argc, char **argv) {
    int rank, ranks, steps = 0, flag, go = 1;
    static double out[CELLS], in[CELLS];
    double milliseconds = argc > 1 ? atof(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double start = MPI_Wtime();
    while (go) {
        MPI_Request requests[2];
        ampl_region_begin("TIMESTEP");
        ampl_metric_add(ampl_metric_register("cells"), CELLS + rank);
        MPI_Irecv(in, CELLS, MPI_DOUBLE, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, CELLS, MPI_DOUBLE, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        int mine = rank == 0 && (MPI_Wtime() - start) * 1e3 < milliseconds;
        MPI_Allreduce(&mine, &go, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        ampl_region_end("TIMESTEP");
        steps++;
    }
    if (rank == 0) printf("%d steps\n", steps);
    MPI_Finalize();
    return 0;
}
