/* Once MPI runs, no file of the process may grow beyond half a kilobyte. What is called then has no order. */
#include <mpi.h>
#include <stddef.h>
#include <sys/resource.h>

int main(int argc, char **argv) {
    struct rlimit limit = {512, 512};
    unsigned tag = 7;
    MPI_Init(&argc, &argv);
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 2;
    for (int turn = 0; turn < 6000; turn++) {
        tag = tag * 1664525u + 1013904223u;
        MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, (tag >> 16) % 97, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
