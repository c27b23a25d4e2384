/* Every other rank in a communicator of its own, with a Cartesian grid inside: neighbour collectives there, messages
 * between both by an intercommunicator, and puts in a communicator of all ranks backwards. */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm half, cart, other;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int dims[2] = {2, 0}, periods[2] = {0, 0}, own;
    MPI_Dims_create(size / 2, 2, dims);
    MPI_Cart_create(half, 2, dims, periods, 0, &cart);
    MPI_Comm_rank(cart, &own);
    int out[4] = {rank, rank, rank, rank}, in[4] = {0};
    for (int step = 0; step < 6; step++)
        MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, cart);
    MPI_Comm back;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back);
    MPI_Win window;
    MPI_Win_create(in, sizeof in, sizeof(int), MPI_INFO_NULL, back, &window);
    MPI_Win_fence(0, window);
    /* To the rank before in the world. */
    MPI_Put(out, 1, MPI_INT, (size - rank) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&back);
    /* The leaders of the halves are the last two ranks: keys are negative. */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? size - 2 : size - 1, 9, &other);
    MPI_Sendrecv(out, 4, MPI_INT, own, 8, in, 4, MPI_INT, own, 8, other, MPI_STATUS_IGNORE);
    MPI_Comm_free(&other);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
