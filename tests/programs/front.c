/* Rounds of a barrier and a sum. -DOWN: with a layer of its own over the beginning and the end. */
#ifdef OWN
#include "front_tool.c"
#endif
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 15; round++) {
        int one = rank + round, all;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    printf("%d: %d\n", rank, sum);
    fflush(stdout);
    return MPI_Finalize();
}
