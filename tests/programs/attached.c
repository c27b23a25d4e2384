/* Each rank writes to memory that the next one has attached to a dynamic window, by its address there. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double own[100], values[2];
    MPI_Win window;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, own, sizeof own);
    MPI_Aint here, there;
    MPI_Get_address(own, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, (rank + size - 1) % size, 0, &there, 1, MPI_AINT, (rank + 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
    MPI_Put(values, 2, MPI_DOUBLE, (rank + 1) % size, there, 2, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_detach(window, own);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
