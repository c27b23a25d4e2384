/* Threads of a rank that are in MPI at the same time.
 *
 * usage: crowd THREADS ROUNDS
 *        crowd helper ROUNDS
 *
 * Each thread exchanges with its like on the next rank, which is late by some milliseconds. With `helper` the main thread
 * works for 20 ms and adds up in each round, while another one waits for a message that comes behind the last. Each
 * rank prints
 *   rank R: MPI_NS of WALL_NS
 * the time of all its threads in MPI, with `helper` of the main one, and how long it was between MPI_Init_thread and
 * MPI_Finalize.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, ranks, rounds;
static long long in_mpi[64];

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000LL * t.tv_sec + t.tv_nsec;
}

static void *exchange(void *number) {
    long tag = (long)number;
    for (int round = 0; round < rounds; round++) {
        int in, out = round;
        if (round % ranks == rank) nanosleep(&(struct timespec){0, 5000000L}, NULL);
        long long before = now();
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % ranks, (int)tag, &in, 1, MPI_INT, (rank + ranks - 1) % ranks,
                     (int)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        in_mpi[tag] += now() - before;
    }
    return NULL;
}

static void *serve(void *unused) {
    int request;
    MPI_Recv(&request, 1, MPI_INT, MPI_ANY_SOURCE, 63, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}

static void work_beside_a_helper(void) {
    pthread_t helper;
    pthread_create(&helper, NULL, serve, NULL);
    for (int round = 0; round < rounds; round++) {
        int sum;
        nanosleep(&(struct timespec){0, 20000000L}, NULL);
        long long before = now();
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        in_mpi[0] += now() - before;
    }
    MPI_Send(&rounds, 1, MPI_INT, (rank + 1) % ranks, 63, MPI_COMM_WORLD);
    pthread_join(helper, NULL);
}

int main(int argc, char **argv) {
    int provided, threads = argc > 1 ? atoi(argv[1]) : 3;
    rounds = argc > 2 ? atoi(argv[2]) : 60;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    long long begin = now(), sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (provided < MPI_THREAD_MULTIPLE || threads > 64) return 77;
    pthread_t all[64];
    if (threads == 0) work_beside_a_helper(), sum = in_mpi[0];
    for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, exchange, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(all[i], NULL), sum += in_mpi[i];
    printf("rank %d: %lld of %lld\n", rank, sum, now() - begin);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
