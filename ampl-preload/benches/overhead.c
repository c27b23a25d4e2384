/* Two or more ranks that compute, and call MPI in between the way programs do.
 *
 * usage: overhead STEPS WORK
 *   WORK  grid rows relaxed per step: says how many calls there are in a second
 *
 * Every fourth step ends with an MPI_Allreduce. Rank 0 prints, per rank, "loop RANK CALLS CPU_NS WALL_NS".
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EDGE 256 /* two grids of 512 KiB: the second-level cache, as a tuned program has it */
#define NEIGHBOURS 4
#define POLLS 4
#define COUNT 64
#define STEPS_PER_SUM 4

static double grids[2][EDGE][EDGE];

static void relax(int rows) {
    static int at = 1, from = 0;
    for (; rows > 0; rows--) {
        double (*old)[EDGE] = grids[from], *new = grids[1 - from][at];
        for (int column = 1; column < EDGE - 1; column++)
            new[column] = 0.25 * (old[at - 1][column] + old[at + 1][column] +
                                  old[at][column - 1] + old[at][column + 1]);
        if (++at == EDGE - 1) {
            at = 1;
            from = 1 - from;
        }
    }
}

static long long now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1000000000LL * t.tv_sec + t.tv_nsec;
}

/* Returns how often it called MPI. */
static int step(int number, int work) {
    static double out[NEIGHBOURS][COUNT], in[NEIGHBOURS][COUNT];
    MPI_Request requests[2 * NEIGHBOURS];
    int rank, ranks, flag;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int n = 0; n < NEIGHBOURS; n++) {
        int from = (rank + ranks - 1 - n % 2) % ranks;
        MPI_Irecv(in[n], COUNT, MPI_DOUBLE, from, n, MPI_COMM_WORLD, &requests[n]);
    }
    for (int n = 0; n < NEIGHBOURS; n++) {
        int to = (rank + 1 + n % 2) % ranks;
        MPI_Isend(out[n], COUNT, MPI_DOUBLE, to, n, MPI_COMM_WORLD, &requests[NEIGHBOURS + n]);
    }
    for (int poll = 0; poll < POLLS; poll++) {
        relax(work * (poll + 1) / POLLS - work * poll / POLLS);
        MPI_Iprobe(MPI_ANY_SOURCE, NEIGHBOURS, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(2 * NEIGHBOURS, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int calls = 4 + 2 * NEIGHBOURS + POLLS;
    if (number % STEPS_PER_SUM == STEPS_PER_SUM - 1) {
        double mine = grids[0][EDGE / 2][EDGE / 2], all;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        calls++;
    }
    return calls;
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 1000, work = argc > 2 ? atoi(argv[2]) : 1000, rank, ranks;
    long long mine[3] = {0};
    MPI_Init(&argc, &argv);
    for (int row = 0; row < EDGE; row++)
        for (int column = 0; column < EDGE; column++)
            grids[0][row][column] = grids[1][row][column] = row ^ column;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Barrier(MPI_COMM_WORLD);
    long long cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), wall = now_ns(CLOCK_MONOTONIC);
    for (int number = 0; number < steps; number++) mine[0] += step(number, work);
    mine[1] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    mine[2] = now_ns(CLOCK_MONOTONIC) - wall;
    long long(*all)[3] = calloc(ranks, sizeof *all);
    PMPI_Gather(mine, 3, MPI_LONG_LONG, all, 3, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < ranks; r++)
        printf("loop %d %lld %lld %lld\n", r, all[r][0], all[r][1], all[r][2]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
