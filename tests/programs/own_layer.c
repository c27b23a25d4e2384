/* A program with a profiling layer of its own: it defines some MPI functions over their PMPI twins.
 *
 * usage: own_layer      compile with -DWHOLE for a layer over MPI_Init and MPI_Finalize too
 */
#include <mpi.h>
#include <stdio.h>

static int sends, waits;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    sends++;
    return PMPI_Send(buffer, count, type, dest, tag, comm);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    waits++;
    return PMPI_Wait(request, status);
}

#ifdef WHOLE
int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }
int MPI_Finalize(void) { return PMPI_Finalize(); }
#endif

int main(void) {
    int rank, ranks, in = -1;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 10; turn++) {
        MPI_Irecv(&in, 1, MPI_INT, (rank + ranks - 1) % ranks, turn, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % ranks, turn, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    printf("rank %d: got %d, %d sends, %d waits\n", rank, in, sends, waits);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
