/* Communicators that are made and freed, one after the other.
 *
 * usage: comm_churn TURNS       two communicators each
 *
 * Every rank prints `rank R: KIB`: how much larger its memory was at the end than after the first tenth. The last turns are
 * like the first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "resident.h"

int main(int argc, char **argv) {
    int rank, number = argc > 1 ? atoi(argv[1]) : 1000;
    long before = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < number; turn++) {
        MPI_Comm one, two;
        if (turn == number / 10) before = resident();
        /* Of one rank each, so that none waits for another. Every other is freed behind the next. */
        MPI_Comm_dup(MPI_COMM_SELF, &one);
        MPI_Comm_split(MPI_COMM_SELF, 0, 0, &two);
        MPI_Comm_free(turn % 2 ? &one : &two);
        MPI_Comm_free(turn % 2 ? &two : &one);
    }
    printf("rank %d: %ld\n", rank, resident() - before);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
