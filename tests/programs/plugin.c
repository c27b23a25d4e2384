/* A plug-in that calls MPI, for dlopened.c. */
#include <mpi.h>
#include <stdio.h>

int run(void) {
    int rank, ranks, sum, version, subversion;
    MPI_Get_version(&version, &subversion);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 10; turn++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d\n", rank, ranks, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
