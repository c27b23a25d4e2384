/* Numbers that each MPI has its own of: constants in lists and alone. Runs on 4 ranks. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, kind;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int sizes[2] = {16, 16}, grid[2] = {2, 2}, periods[2] = {0, 0};
    int ways[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int shares[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    MPI_Datatype type;
    MPI_Type_create_darray(4, rank, 2, sizes, ways, shares, grid, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_free(&type);
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    MPI_Topo_test(cart, &kind);
    MPI_Comm_free(&cart);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
