/* Loops over time of several shapes: `step_shapes SHAPE STEPS`. Each rank exchanges with both neighbours in a step and adds up.
 *
 * plain     nothing else
 * warm      one step before a barrier, by the same code
 * output    every 20th step, from the first on, gathers
 * solver    iterations until convergence in each step, 2 to 8
 * deep      a function that calls itself
 * peeled    the first step and the last at places of their own: two less in the loop
 * uneven    even ranks make more calls in a step than odd ones
 * cases     the loop three times, with a broadcast before each: three times as many
 * turns     a barrier in even steps, an exchange in odd ones
 * none      no loop
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static int rank, size;
static double left, right, sum;

static APART void exchange(void) {
    MPI_Request both[2];
    MPI_Irecv(&right, 1, MPI_DOUBLE, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&left, 1, MPI_DOUBLE, (rank + 1) % size, 3, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static APART void step(void) {
    exchange();
    MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static APART void write_output(void) {
    double all[64];
    MPI_Gather(&left, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static APART int solve(int iterations) {
    exchange();
    for (int i = 0; i < iterations; i++) MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return iterations;
}

static APART int deeper(int steps) {
    step();
    return steps > 1 ? deeper(steps - 1) + 1 : 1;
}

static void run(const char *shape, int steps) {
#define IS(name) (!strcmp(shape, name))
    if (IS("warm")) {
        step();
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < steps; i++) step();
    } else if (IS("output")) {
        for (int i = 0; i < steps; i++) {
            step();
            if (i % 20 == 0) write_output();
        }
    } else if (IS("solver")) {
        for (int i = 0; i < steps; i++) solve(2 + i * 5 % 7);
    } else if (IS("deep")) {
        deeper(steps);
    } else if (IS("peeled")) {
        MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        exchange();
        for (int i = 2; i < steps; i++) {
            MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            exchange();
        }
        MPI_Allreduce(&right, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        exchange();
    } else if (IS("uneven")) {
        for (int i = 0; i < steps; i++) {
            step();
            for (int j = rank % 2; j < 3; j++) MPI_Sendrecv_replace(&left, 1, MPI_DOUBLE, rank, 5, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else if (IS("cases")) {
        for (int k = 0; k < 3; k++) {
            MPI_Bcast(&left, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            for (int i = 0; i < steps; i++) step();
        }
    } else if (IS("turns")) {
        for (int i = 0; i < steps; i++) {
            if (i % 2) exchange();
            else MPI_Barrier(MPI_COMM_WORLD);
        }
    } else if (IS("none")) {
        step();
        write_output();
    } else {
        for (int i = 0; i < steps; i++) step();
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = rank;
    run(argc > 1 ? argv[1] : "plain", argc > 2 ? atoi(argv[2]) : 50);
    MPI_Reduce(&sum, &left, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
