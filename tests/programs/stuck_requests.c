/* Three ranks that exchange messages ARGUMENT times; then rank 0 waits for all of its requests, of which none is met, and
   the others for a message of rank 0 that never comes. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, in[4], out = 0;
    MPI_Request requests[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < atoi(argv[1]); turn++) {
        MPI_Irecv(in, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[1]);
        if (turn % 2)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        else
            for (int one = 0; one < 2; one++)
                MPI_Wait(&requests[one], MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        for (int one = 0; one < 2; one++)
            MPI_Irecv(&in[one], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[one]);
        MPI_Irecv(&in[2], 1, MPI_INT, 2, 8, MPI_COMM_WORLD, &requests[2]);
        MPI_Issend(&out, 1, MPI_INT, 2, 9, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(in, 1, MPI_INT, 0, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
