/* A 2-D 5-point stencil without periods: 4 receives and 4 sends of 256 doubles, MPI_PROC_NULL at the edges.
 *
 * usage: stencil2 ITERATIONS
 */
#include <mpi.h>
#include <stdlib.h>

enum { LENGTH = 256 };

static double in[4][LENGTH], out[4][LENGTH];

int main(int argc, char **argv) {
    int rank, ranks, width = 1, iterations = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (width * width < ranks) width++;
    int x = rank % width, y = rank / width, height = ranks / width;
    int neighbours[4] = {
        x > 0 ? rank - 1 : MPI_PROC_NULL,
        x < width - 1 ? rank + 1 : MPI_PROC_NULL,
        y > 0 ? rank - width : MPI_PROC_NULL,
        y < height - 1 ? rank + width : MPI_PROC_NULL,
    };
    for (int iteration = 0; iteration < iterations; iteration++) {
        MPI_Request requests[8];
        for (int side = 0; side < 4; side++)
            MPI_Irecv(in[side], LENGTH, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 4; side++)
            MPI_Isend(out[side], LENGTH, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD,
                      &requests[4 + side]);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
