/* A ring of messages in a region, and one in a file, whose names are the argument.
 *
 * usage: hostile NAME
 */
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, ranks, in;
    const char *name = argc > 1 ? argv[1] : "name";
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, name);
    for (int turn = 0; turn < 20; turn++) {
        ampl_region_begin(name);
        MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, comm,
                     MPI_STATUS_IGNORE);
        ampl_region_end(name);
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
