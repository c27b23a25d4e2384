/* Nanoseconds of thread CPU time per call, minimum and median over blocks; one line per loop and rank. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define BLOCKS 201
#define CALLS 1000
#define REQUESTS 8

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int rank;

static void report(const char *name, double *blocks) {
    qsort(blocks, BLOCKS, sizeof *blocks, ascending);
    printf("%s %d %.2f %.2f\n", name, rank, blocks[0] / CALLS, blocks[BLOCKS / 2] / CALLS);
    fflush(stdout);
}

#define MEASURE(name, call)                          \
    do {                                             \
        static double blocks[BLOCKS];                \
        for (int b = 0; b < BLOCKS; b++) {           \
            double start = now_ns();                 \
            for (int i = 0; i < CALLS; i++) { call; } \
            blocks[b] = now_ns() - start;            \
        }                                            \
        report(name, blocks);                        \
    } while (0)

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    volatile unsigned long long clock = 0;
    int value = 0, flag, self;
    MPI_Request one, several[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &several[i]);
    MEASURE("two-clock-reads", clock += __rdtsc() - __rdtsc());
    MEASURE("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &self));
    MEASURE("MPI_Send", MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MEASURE("MPI_Iprobe", MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    MEASURE("MPI_Isend+Wait", MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &one);
            MPI_Wait(&one, MPI_STATUS_IGNORE));
    MEASURE("MPI_Waitall(8)", MPI_Waitall(REQUESTS, several, MPI_STATUSES_IGNORE));
    for (int i = 0; i < REQUESTS; i++)
        MPI_Request_free(&several[i]);
    MPI_Finalize();
    return 0;
}
