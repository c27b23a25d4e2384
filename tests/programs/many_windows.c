/* Barriers of one rank each, one after the other, each of which may begin a window.
 *
 * usage: many_windows TURNS
 *
 * Every rank prints `rank R: KIB`: how much larger its memory was at the end than after the first tenth.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "resident.h"

int main(int argc, char **argv) {
    int rank, turns = argc > 1 ? atoi(argv[1]) : 1000;
    long before = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < turns; turn++) {
        if (turn == turns / 10) before = resident();
        MPI_Barrier(MPI_COMM_SELF);
    }
    printf("rank %d: %ld\n", rank, resident() - before);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
