/* Two or more ranks that compute, and call MPI in between the way programs do.
 *
 * usage: overhead STEPS WORK [alternate]
 *   WORK       grid rows relaxed per step: says how many calls there are in a second
 *   alternate  blocks of steps call MPI by its public and by its profiling names in turns, so that one
 *              run times both; the profiling names are nobody's to intercept
 *
 * Rank 0 prints, per rank, "loop RANK CALLS CPU_NS WALL_NS" and, alternating, "block RANK WRAPPED CPU_NS" in
 * the order of time, blocks going wrapped, bare, bare, wrapped so that drift has no part in their ratio.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EDGE 256 /* two grids of 512 KiB: the second-level cache, as a tuned program has it */
#define NEIGHBOURS 4
#define POLLS 4
#define COUNT 64
/* About a millisecond: mostly undisturbed, and long against two readings of the clock. */
#define STEPS_PER_BLOCK 4

#define WRAPPED(block) ((block) % 4 == 0 || (block) % 4 == 3)

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

/* The functions that a step calls, by their public names or by their profiling names. */
#define NAMES(MPI)                                                                                        \
    {MPI##_Comm_rank, MPI##_Comm_size, MPI##_Irecv, MPI##_Isend, MPI##_Iprobe, MPI##_Waitall, MPI##_Allreduce}

struct names {
    int (*comm_rank)(MPI_Comm, int *);
    int (*comm_size)(MPI_Comm, int *);
    int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*iprobe)(int, int, MPI_Comm, int *, MPI_Status *);
    int (*waitall)(int, MPI_Request *, MPI_Status *);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
};

static const struct names public_names = NAMES(MPI), profiling_names = NAMES(PMPI);

/* One turn of a block; returns how often it called MPI. */
static int step(const struct names *mpi, int turn, int work) {
    static double out[NEIGHBOURS][COUNT], in[NEIGHBOURS][COUNT];
    MPI_Request requests[2 * NEIGHBOURS];
    int rank, ranks, flag;
    mpi->comm_rank(MPI_COMM_WORLD, &rank);
    mpi->comm_size(MPI_COMM_WORLD, &ranks);
    for (int n = 0; n < NEIGHBOURS; n++) {
        int from = (rank + ranks - 1 - n % 2) % ranks;
        mpi->irecv(in[n], COUNT, MPI_DOUBLE, from, n, MPI_COMM_WORLD, &requests[n]);
    }
    for (int n = 0; n < NEIGHBOURS; n++) {
        int to = (rank + 1 + n % 2) % ranks;
        mpi->isend(out[n], COUNT, MPI_DOUBLE, to, n, MPI_COMM_WORLD, &requests[NEIGHBOURS + n]);
    }
    for (int poll = 0; poll < POLLS; poll++) {
        relax(work * (poll + 1) / POLLS - work * poll / POLLS);
        mpi->iprobe(MPI_ANY_SOURCE, NEIGHBOURS, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    mpi->waitall(2 * NEIGHBOURS, requests, MPI_STATUSES_IGNORE);
    mpi->comm_rank(MPI_COMM_WORLD, &rank);
    int calls = 4 + 2 * NEIGHBOURS + POLLS;
    if (turn == 0) {
        double mine = grids[0][EDGE / 2][EDGE / 2], all;
        mpi->allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        calls++;
    }
    return calls;
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 1000, work = argc > 2 ? atoi(argv[2]) : 1000, rank;
    int alternate = argc > 3 && strcmp(argv[3], "alternate") == 0;
    int blocks = steps / STEPS_PER_BLOCK, ranks;
    long long mine[3] = {0}, *times = calloc(blocks + 1, sizeof *times);
    MPI_Init(&argc, &argv);
    for (int row = 0; row < EDGE; row++)
        for (int column = 0; column < EDGE; column++)
            grids[0][row][column] = grids[1][row][column] = row ^ column;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Barrier(MPI_COMM_WORLD);
    long long cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), wall = now_ns(CLOCK_MONOTONIC);
    for (int block = 0; block < blocks; block++) {
        times[block] = -now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int turn = 0; turn < STEPS_PER_BLOCK; turn++)
            mine[0] += step(!alternate || WRAPPED(block) ? &public_names : &profiling_names, turn, work);
        times[block] += now_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    mine[1] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    mine[2] = now_ns(CLOCK_MONOTONIC) - wall;
    long long(*all)[3] = calloc(ranks, sizeof *all), *blocks_of = calloc((size_t)ranks * (blocks + 1), 8);
    PMPI_Gather(mine, 3, MPI_LONG_LONG, all, 3, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    PMPI_Gather(times, blocks, MPI_LONG_LONG, blocks_of, blocks, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < ranks; r++) {
        printf("loop %d %lld %lld %lld\n", r, all[r][0], all[r][1], all[r][2]);
        for (int block = 0; alternate && block < blocks; block++)
            printf("block %d %d %lld\n", r, WRAPPED(block), blocks_of[(size_t)r * blocks + block]);
    }
    MPI_Finalize();
    return 0;
}
