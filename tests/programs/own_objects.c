/* Objects that MPI itself gives where a program expects a new one: null communicators of ranks that are left out, the
 * empty group, the error handler that was there. Also statuses that are read twice. */
#include <mpi.h>
#include <stddef.h>

struct pair { int first; double second; };

int main(int argc, char **argv)
{
    int rank, size, count;
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

    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, offsetof(struct pair, second)};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    static struct pair out[2], in[2];
    MPI_Status status;
    for (int step = 0; step < 5; step++) {
        MPI_Sendrecv(out, 1 + step % 2, type, (rank + 1) % size, 0, in, 2, type, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, type, &count);
        MPI_Get_elements(&status, type, &count);
        MPI_Get_count(&status, type, &count);
    }
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
