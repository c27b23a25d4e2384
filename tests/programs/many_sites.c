/* Ten thousand call sites, each passed as often as the argument says.
 *
 * usage: many_sites TIMES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define SITE MPI_Barrier(MPI_COMM_SELF);
#define TEN(x) x x x x x x x x x x

int main(int argc, char **argv) {
    int rank, times = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < times; turn++) {
        TEN(TEN(TEN(TEN(SITE))))
    }
    if (rank == 0) printf("10000 sites, %d times\n", times);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
