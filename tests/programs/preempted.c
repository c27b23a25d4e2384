/* Ranks that lose their processor often before MPI_Init, and hardly ever after it; or rank 1 alone, after it.
 *
 * usage: preempted TIMES MILLISECONDS   prints how often the processor was lost from before MPI_Init to behind MPI_Finalize
 *        preempted TIMES one            the same, and how many seconds that took; the other ranks sleep meanwhile. Of rank 1
 *                                       only what it lost while it computed: MPI may give turns away
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long lost(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* Beside a child that wants the same processor, for ten seconds at most. */
static void lose(long times) {
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    pid_t child = fork();
    if (child == 0)
        for (;;) continue;
    for (time_t end = time(NULL) + 10; lost() < times && time(NULL) < end;) continue;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sched_setaffinity(0, sizeof before, &before);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int one(long times) {
    int rank, ranks, done = 0, there = 0;
    long own = 0;
    long before = lost();
    double begun = now();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 1) {
        long begin = lost();
        lose(begin + times);
        own = lost() - begin;
        for (int other = 0; other < ranks; other++)
            if (other != rank) MPI_Send(&done, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
    }
    while (rank != 1 && !there) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        MPI_Iprobe(1, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    }
    if (rank != 1) MPI_Recv(&done, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    printf("rank %d: %ld in %g\n", rank, rank == 1 ? own : lost() - before, now() - begun);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[2], "one") == 0) return one(atol(argv[1]));
    long milliseconds = argc > 2 ? atol(argv[2]) : 0;
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    int rank;
    lose(argc > 1 ? atol(argv[1]) : 0);
    long before = lost();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    nanosleep(&pause, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    printf("rank %d: %ld\n", rank, lost() - before);
    return 0;
}
