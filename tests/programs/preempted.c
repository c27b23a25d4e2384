/* Ranks that lose their processor often before MPI_Init, and hardly ever after it.
 *
 * usage: preempted TIMES MILLISECONDS   prints how often the processor was lost from before MPI_Init to behind MPI_Finalize
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv) {
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
