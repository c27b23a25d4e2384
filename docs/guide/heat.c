/* The guide's example: ranks in a ring work, exchange a halo with their neighbours, and add up.
 *   mpicc -g -o heat heat.c && mpirun -n 8 ./heat 2000 */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

/* Sleeps in place of computing, so that eight ranks fit on any machine. */
static void work(double milliseconds) {
    struct timespec duration = {0, (long)(milliseconds * 1e6)};
    nanosleep(&duration, NULL);
}

int main(int argc, char **argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 400;
    double halo[2][512] = {{0}}, sum, part = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < steps; i++) {
        work(rank == 3 ? 6 : 4); /* rank 3 has half as much again to do */
        MPI_Sendrecv(halo[0], 512, MPI_DOUBLE, (rank + 1) % size, 0, halo[1], 512, MPI_DOUBLE,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
