/* Steps of a simulation that someone waits for: each rank works, exchanges with its neighbours in a ring, and in
 * every fourth step all reduce a number.
 *
 * usage: steps STEPS WORK
 *   WORK  rows of a small grid that each rank relaxes per step
 *
 * Rank 0 prints the times of all steps of all ranks, nanoseconds, a line each; gathered by profiling names, so that
 * a tool in between has no part in it.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COLUMNS = 512, ROWS = 8, HALO = 256 };

static double grid[ROWS][COLUMNS];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void relax(int rows) {
    for (int i = 0; i < rows; i++) {
        double *row = grid[i % ROWS], *other = grid[(i + 1) % ROWS];
        for (int j = 1; j + 1 < COLUMNS; j++) row[j] = 0.25 * (row[j - 1] + row[j + 1] + other[j - 1] + other[j + 1]);
    }
}

int main(int argc, char **argv) {
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 1000, work = argc > 2 ? atoi(argv[2]) : 200;
    double out[2][HALO] = {{0}}, in[2][HALO], residual = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    double *times = calloc(steps, sizeof *times), *all = NULL, begin = now(), end;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[4];
        relax(work);
        MPI_Irecv(in[0], HALO, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in[1], HALO, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out[0], HALO, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(out[1], HALO, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        if (step % 4 == 3) MPI_Allreduce(&residual, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        end = now();
        times[step] = end - begin;
        begin = end;
    }
    if (rank == 0) all = calloc((size_t)steps * ranks, sizeof *all);
    PMPI_Gather(times, steps, MPI_DOUBLE, all, steps, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    /* The first steps open connections and touch memory. */
    for (int i = 0; rank == 0 && i < steps * ranks; i++)
        if (i % steps >= steps / 10) printf("%.0f\n", all[i]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
