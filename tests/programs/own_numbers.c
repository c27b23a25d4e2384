/* Numbers that each MPI has its own of: constants in lists, a kind of topology, error codes.
 * Runs on 4 ranks. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, kind, class, code, length;
    char text[MPI_MAX_ERROR_STRING];
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

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Of a call, of the program, of MPI. */
    int codes[4] = {MPI_Send(text, 1, MPI_CHAR, size + 5, 0, MPI_COMM_WORLD), 0, 0, MPI_ERR_TRUNCATE};
    MPI_Add_error_class(&codes[1]);
    MPI_Add_error_code(codes[1], &codes[2]);
    MPI_Add_error_string(codes[2], "no more cells");
    for (code = 0; code < 4; code++) {
        MPI_Error_class(codes[code], &class);
        MPI_Error_string(codes[code], text, &length);
        MPI_Error_string(class, text, &length);
        MPI_Comm_call_errhandler(MPI_COMM_WORLD, codes[code]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
