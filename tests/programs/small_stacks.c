/* MPI where there is little stack, but enough for MPI.
 *
 * usage: small_stacks main      the process starts again with 64 KiB for its main thread
 *        small_stacks thread    all of MPI on a thread with 32 KiB
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void *work(void *nothing) {
    int rank, ranks, provided, in = -1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 50; turn++)
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, turn, &in, 1, MPI_INT, (rank + ranks - 1) % ranks,
                     turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return nothing;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "thread") == 0) {
        pthread_attr_t small;
        pthread_t thread;
        pthread_attr_init(&small);
        if (pthread_attr_setstacksize(&small, 32 << 10)) return 2;
        if (pthread_create(&thread, &small, work, NULL)) return 3;
        pthread_join(thread, NULL);
    } else if (argc > 1) {
        struct rlimit limit;
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = 64 << 10;
        if (setrlimit(RLIMIT_STACK, &limit)) return 4;
        execl(argv[0], argv[0], NULL);
        return 5;
    } else {
        work(NULL);
    }
    return 0;
}
