/* Whole numbers only: which floating-point exceptions has somebody raised in this thread meanwhile?
 *
 * usage: floating TURNS trap|ask
 *   trap  an inexact result is a signal
 * Now and then the others wait for rank 0 so long that the square of it is no double.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xmmintrin.h>

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 100, one = 1, sum = 0, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    _MM_SET_EXCEPTION_STATE(0);
    if (argc > 2 && !strcmp(argv[2], "trap")) _MM_SET_EXCEPTION_MASK(_MM_MASK_MASK & ~_MM_MASK_INEXACT);
    for (int turn = 0; turn < turns; turn++) {
        int in, found;
        MPI_Request request;
        if (turn % 20 == 19 && rank == 0) usleep(50000);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Irecv(&in, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
        MPI_Test(&request, &found, MPI_STATUS_IGNORE);
        MPI_Iprobe(rank, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Send(&one, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Pcontrol(turn % 7 == 6 ? 0 : turn % 7 ? 2 : 1);
        usleep(1000);
    }
    unsigned raised = _MM_GET_EXCEPTION_STATE();
    _MM_SET_EXCEPTION_MASK(_MM_MASK_MASK);
    printf("rank %d: %u exceptions, sum %d\n", rank, raised, sum);
    MPI_Finalize();
    return 0;
}
