/* A profiling layer in the program itself defines MPI_Finalize and MPI_Scan, and calls MPI by its other names. */
#include <mpi.h>
#include <stdio.h>

int MPI_Finalize(void) { return PMPI_Finalize(); }

int MPI_Scan(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return PMPI_Scan(from, to, count, type, op, comm);
}

int main(int argc, char **argv) {
    int rank, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 20; turn++) {
        MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d: %d\n", rank, sum);
    return MPI_Finalize();
}
