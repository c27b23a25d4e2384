/* A program that waits for its own children, and has a handler for their ends, with a thread that takes signals.
 *
 * usage: children      rank 0 prints the children that were not its own
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int signals, found;
static atomic_int over;

static void on_end(int number) {
    (void)number;
    atomic_fetch_add(&signals, 1);
}

/* Takes whatever child there is, as a server does. */
static void *reap(void *none) {
    while (!atomic_load(&over)) {
        if (waitpid(-1, NULL, WNOHANG) > 0) atomic_fetch_add(&found, 1);
        usleep(200);
    }
    return none;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = on_end, .sa_flags = SA_RESTART};
    pthread_t thread;
    int provided, rank;
    sigaction(SIGCHLD, &action, NULL);
    if (pthread_create(&thread, NULL, reap, NULL)) return 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 100; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        usleep(2000);
    }
    MPI_Finalize();
    usleep(100000);
    atomic_store(&over, 1);
    pthread_join(thread, NULL);
    if (rank == 0) printf("%d signals, %d children\n", atomic_load(&signals), atomic_load(&found));
    return 0;
}
