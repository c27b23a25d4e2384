/* Takes away all address space that is not used yet once MPI runs, so that nothing can be mapped any more. */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, ranks, turns = 200, in = 0;
    unsigned long pages = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 2 * turns; turn++) {
        if (turn == turns) {
            FILE *file = fopen("/proc/self/statm", "r");
            if (!file || fscanf(file, "%lu", &pages) != 1) return 2;
            fclose(file);
            struct rlimit limit = {pages * sysconf(_SC_PAGESIZE), pages * sysconf(_SC_PAGESIZE)};
            if (setrlimit(RLIMIT_AS, &limit)) return 3;
        }
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, turn % 7, &in, 1, MPI_INT, (rank + ranks - 1) % ranks,
                     turn % 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("rank %d: %d\n", rank, in);
    MPI_Finalize();
    return 0;
}
