/* Objects that MPI itself gives where a program expects a new one: null communicators of ranks that are left out, the
 * empty group, the error handler that was there. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : 0, 0, &part);
    if (part != MPI_COMM_NULL) {
        MPI_Barrier(part);
        MPI_Comm_free(&part);
    }
    MPI_Group all, ends, none;
    int last[2] = {size - 1, 0};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, last, &ends);
    MPI_Group_incl(all, 0, last, &none);
    MPI_Group_free(&none);
    MPI_Comm_create(MPI_COMM_WORLD, ends, &part);
    if (part != MPI_COMM_NULL) {
        MPI_Barrier(part);
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&ends);
    MPI_Group_free(&all);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Finalize();
    return 0;
}
