/* A 3-D 7-point stencil, periodic: 6 receives and 6 sends of 256 doubles.
 *
 * usage: stencil3 ITERATIONS
 */
#include <mpi.h>
#include <stdlib.h>

enum { LENGTH = 256 };

static double in[6][LENGTH], out[6][LENGTH];

int main(int argc, char **argv) {
    int rank, ranks, width = 1, iterations = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (width * width * width < ranks) width++;
    int place[3] = {rank % width, rank / width % width, rank / width / width}, neighbours[6];
    for (int side = 0, below = 1; side < 6; side++) {
        int at = place[side / 2], next = (at + (side % 2 ? 1 : width - 1)) % width;
        neighbours[side] = rank + (next - at) * below;
        if (side % 2) below *= width;
    }
    for (int iteration = 0; iteration < iterations; iteration++) {
        MPI_Request requests[12];
        for (int side = 0; side < 6; side++)
            MPI_Irecv(in[side], LENGTH, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 6; side++)
            MPI_Isend(out[side], LENGTH, MPI_DOUBLE, neighbours[side], 0, MPI_COMM_WORLD,
                      &requests[6 + side]);
        MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
