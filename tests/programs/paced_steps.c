/* A stencil whose steps take some time: `paced_steps SHAPE STEPS MICROSECONDS`.
 *
 * plain   one step to warm up, a barrier, then STEPS steps; every 20th, from the first on, gathers
 * solver  iterations in each step, 2 to 8, and no step to warm up
 * nested  80 to 95 iterations in each step: the first step alone looks like a loop over time
 * mixed   even ranks exchange by another call than odd ones: no call is common to all
 * levels  an exchange on levels 0, 1, 2, 1, 0 by the same code: no call is made once in a step
 * edges   a column that is not periodic, a call for each neighbour: the first and the last rank have none in common
 * none    no loop: waits for STEPS steps' time at places of their own
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static int rank, size, pace;
static double left, right, sum;

static APART void exchange(void) {
    MPI_Request both[2];
    MPI_Irecv(&right, 1, MPI_DOUBLE, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&left, 1, MPI_DOUBLE, (rank + 1) % size, 3, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static APART void add_up(void) { MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

static APART void step(void) {
    usleep(pace);
    exchange();
    add_up();
}

static APART void write_output(void) {
    double all[64];
    MPI_Gather(&left, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static APART void solve(int iterations) {
    exchange();
    for (int i = 0; i < iterations; i++) {
        usleep(pace / 8);
        MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static APART void nested_step(int iterations) {
    for (int i = 0; i < iterations; i++) {
        usleep(pace);
        exchange();
    }
    add_up();
}

static APART void levels_step(void) {
    static const int levels[5] = {0, 1, 2, 1, 0};
    double both[4] = {0};
    usleep(pace);
    for (int i = 0; i < 5; i++)
        MPI_Sendrecv_replace(both, 1 << levels[i], MPI_DOUBLE, (rank + 1) % size, 4, (rank + size - 1) % size, 4,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Even ranks exchange by another call than odd ones: no call is common to all. */
static APART void pair_step(void) {
    usleep(pace);
    if (rank % 2)
        MPI_Sendrecv_replace(&left, 1, MPI_DOUBLE, rank - 1, 5, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Sendrecv(&left, 1, MPI_DOUBLE, rank + 1, 5, &right, 1, MPI_DOUBLE, rank + 1, 5, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static APART void from_above(void) {
    MPI_Sendrecv(&left, 1, MPI_DOUBLE, rank - 1, 6, &right, 1, MPI_DOUBLE, rank - 1, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static APART void from_below(void) {
    MPI_Sendrecv(&left, 1, MPI_DOUBLE, rank + 1, 6, &right, 1, MPI_DOUBLE, rank + 1, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static APART void edges_step(void) {
    usleep(pace);
    if (rank > 0) from_above();
    if (rank < size - 1) from_below();
}

/* The rank above answers from elsewhere: visits of the two calls differ. */
static APART void edges_start(void) {
    if (rank > 0) from_above();
    if (rank < size - 1)
        MPI_Sendrecv(&left, 1, MPI_DOUBLE, rank + 1, 6, &right, 1, MPI_DOUBLE, rank + 1, 6, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

#define ONCE                    \
    usleep(pace * (steps / 16)); \
    MPI_Allreduce(&left, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#define FOUR ONCE ONCE ONCE ONCE

int main(int argc, char **argv) {
    const char *shape = argv[1];
    int steps = atoi(argv[2]);
    pace = atoi(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = rank;
    if (!strcmp(shape, "solver")) {
        for (int i = 0; i < steps; i++) solve(2 + i * 5 % 7);
    } else if (!strcmp(shape, "nested")) {
        for (int i = 0; i < steps; i++) nested_step(80 + i * 7 % 16);
    } else if (!strcmp(shape, "levels")) {
        for (int i = 0; i < steps; i++) levels_step();
    } else if (!strcmp(shape, "mixed")) {
        for (int i = 0; i < steps; i++) pair_step();
    } else if (!strcmp(shape, "edges")) {
        edges_start();
        for (int i = 0; i < steps; i++) edges_step();
    } else if (!strcmp(shape, "none")) {
        FOUR FOUR FOUR FOUR
    } else {
        step();
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < steps; i++) {
            step();
            if (i % 20 == 0) write_output();
        }
    }
    MPI_Reduce(&sum, &left, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
