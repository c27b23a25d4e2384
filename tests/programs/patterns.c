/* Communication of many kinds on rows and columns of a grid, as skeletons repeat it: communicators, types, operations,
 * persistent and partial completion, vectors of counts that differ by rank.
 * Usage: patterns ROWS COLUMNS STEPS */
#include <mpi.h>
#include <stdlib.h>

enum { CELLS = 40 };

static void largest(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int at = 0; at < *count; at++)
        if (((int *)from)[at] > ((int *)to)[at])
            ((int *)to)[at] = ((int *)from)[at];
}

int main(int argc, char **argv)
{
    int rank, size, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int dims[2] = {atoi(argv[1]), atoi(argv[2])}, periods[2] = {1, 0}, steps = atoi(argv[3]);
    MPI_Comm grid, row;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_set_name(grid, "the \"grid\"");
    int side[4];
    MPI_Cart_shift(grid, 0, 1, &side[0], &side[1]);
    MPI_Cart_shift(grid, 1, 1, &side[2], &side[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / dims[1], -rank, &row);
    MPI_Datatype column;
    MPI_Type_vector(CELLS, 1, CELLS, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Op most;
    MPI_Op_create(largest, 1, &most);
    static int in[4][CELLS * CELLS], out[CELLS * CELLS];
    int counts[64], places[64], mine = 1 + rank % 3, peer;
    MPI_Comm_rank(row, &peer);
    for (int at = 0; at < dims[1]; at++) {
        int other = rank / dims[1] * dims[1] + dims[1] - 1 - at;
        counts[at] = 1 + other % 3;
        places[at] = 4 * at;
    }
    MPI_Request request[4], always;
    /* Around the row, whose ranks are counted from its end. */
    MPI_Send_init(out, 3, MPI_INT, (peer + 1) % dims[1], 7, row, &always);
    for (int step = 0; step < steps; step++) {
        /* All four from one place: at the edges two are from nobody. */
        for (int at = 0; at < 4; at++)
            MPI_Irecv(in[at], 1, column, side[at], 3, grid, &request[at]);
        for (int at = 3; at >= 0; at--)
            MPI_Send(out, 1, column, side[at], 3, grid);
        int flag = 0;
        MPI_Request last = request[3];
        MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
        while (!flag)
            MPI_Test(&last, &flag, MPI_STATUS_IGNORE);
        MPI_Start(&always);
        MPI_Recv(in[0], 3, MPI_INT, MPI_ANY_SOURCE, 7, row, MPI_STATUS_IGNORE);
        MPI_Wait(&always, MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, out, 2, MPI_INT, most, MPI_COMM_WORLD);
        MPI_Allgatherv(out, mine, MPI_INT, in[1], counts, places, MPI_INT, row);
        if (step % 4 == 3)
            MPI_Reduce(out, in[0], 5, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD);
    }
    MPI_Request pair[2];
    if (rank % 2 == 0) {
        MPI_Irecv(in[0], 8, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &pair[1]);
        MPI_Irecv(in[1], 8, MPI_INT, (rank + 1) % size, 6, MPI_COMM_WORLD, &pair[0]);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    } else {
        MPI_Send(out, 8, MPI_INT, rank - 1, 5, MPI_COMM_WORLD);
        MPI_Send(out, rank, MPI_INT, rank - 1, 6, MPI_COMM_WORLD);
    }
    MPI_Request_free(&always);
    MPI_Op_free(&most);
    MPI_Type_free(&column);
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
