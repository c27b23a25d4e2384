/* Four ranks that come to a stop, each in another way: rank 0 receives what nobody sends, on a communicator in which
   ranks are turned round; rank 1 waits for a request; rank 2 asks for a message again and again; rank 3 stops itself
   outside of MPI. Until then they add up ARGUMENT times. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size, there = 0, number = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < atoi(argv[1]); turn++)
        MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    if (rank == 0) {
        MPI_Recv(&number, 1, MPI_INT, 0, 41, turned, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Request request;
        MPI_Irecv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 42, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 2) {
        while (!there) {
            MPI_Iprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            usleep(500);
        }
    } else {
        for (;;)
            raise(SIGSTOP);
    }
    MPI_Comm_free(&turned);
    MPI_Finalize();
    return 0;
}
