/* A 2-D stencil on a grid whose places are renumbered, by five kinds of calls; then a sum up a binary tree.
 * Usage: torus_mixed ROWS COLUMNS STEPS */
#include <mpi.h>
#include <stdlib.h>

enum { CELLS = 64 };

static int rows, columns, size;

/* The rank at a place of the grid; none outside. */
static int at(int row, int column)
{
    if (row < 0 || row >= rows || column < 0 || column >= columns)
        return MPI_PROC_NULL;
    return (row * columns + column) * 7 % size;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    rows = atoi(argv[1]);
    columns = atoi(argv[2]);
    int steps = atoi(argv[3]), place = 0;
    while (at(place / columns, place % columns) != rank)
        place++;
    int row = place / columns, column = place % columns;
    int north = at(row - 1, column), south = at(row + 1, column);
    int west = at(row, column - 1), east = at(row, column + 1);
    double out[CELLS] = {0}, in[CELLS], sum = rank;
    int dims[2] = {rows, 0};
    MPI_Dims_create(size, 2, dims);
    MPI_Request persistent[2];
    MPI_Send_init(out, CELLS, MPI_DOUBLE, east, 3, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(in, CELLS, MPI_DOUBLE, west, 3, MPI_COMM_WORLD, &persistent[1]);
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(out, CELLS, MPI_DOUBLE, north, 1, in, CELLS, MPI_DOUBLE, south, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Request both[2];
        MPI_Irecv(in, CELLS, MPI_DOUBLE, north, 2, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out, CELLS, MPI_DOUBLE, south, 2, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Startall(2, persistent);
        MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
        if (west != MPI_PROC_NULL)
            MPI_Send(out, CELLS, MPI_DOUBLE, west, 4, MPI_COMM_WORLD);
        if (east != MPI_PROC_NULL)
            MPI_Recv(in, CELLS, MPI_DOUBLE, east, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    /* To the parent in a binary tree, from the leaves up. */
    for (int child = 2 * rank + 1; child <= 2 * rank + 2; child++) {
        double part = 0;
        if (child < size)
            MPI_Recv(&part, 1, MPI_DOUBLE, child, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += part;
    }
    if (rank > 0)
        MPI_Send(&sum, 1, MPI_DOUBLE, (rank - 1) / 2, 5, MPI_COMM_WORLD);
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Finalize();
    return 0;
}
