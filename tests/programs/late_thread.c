/* A thread of its own calls MPI while no file may grow, so there is no room for what a thread begins with. Who: the ranks from
   ARGUMENT on. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void *call(void *unused) {
    for (int turn = 0; turn < 20; turn++) MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, turn, MPI_COMM_WORLD);
    return unused;
}

int main(int argc, char **argv) {
    int provided, rank, sum, one = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank >= atoi(argv[1])) {
        struct rlimit before, small;
        pthread_t thread;
        getrlimit(RLIMIT_FSIZE, &before);
        small = before;
        small.rlim_cur = 512;
        if (setrlimit(RLIMIT_FSIZE, &small)) return 2;
        if (pthread_create(&thread, NULL, call, NULL)) return 3;
        pthread_join(thread, NULL);
        setrlimit(RLIMIT_FSIZE, &before);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d: %d\n", rank, sum);
    fflush(stdout);
    return MPI_Finalize();
}
