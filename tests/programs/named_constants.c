/* Calls whose integer arguments are constants of MPI, and some that only look so.
 *
 * usage: named_constants   on any number of ranks; writes a file in its directory and deletes it
 */
#include <mpi.h>
#include <stddef.h>

int main(int argc, char **argv) {
    int provided, same, kind, found, class, key, integers, addresses, types, combiner, rank;
    int sizes[2] = {6, 4}, part[2] = {3, 2}, zeros[2] = {0, 0}, cell[4] = {0};
    void *attribute;
    MPI_Comm node, copy, line;
    MPI_Datatype column, block, real;
    MPI_Win window;
    MPI_File file;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Query_thread(&provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 3, MPI_INFO_NULL, &node);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_compare(copy, MPI_COMM_WORLD, &same);
    MPI_Comm_size(copy, &sizes[0]);
    MPI_Cart_create(copy, 1, sizes, zeros, 0, &line);
    MPI_Topo_test(line, &kind);
    MPI_Topo_test(copy, &kind);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &attribute, &found);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_free_keyval(&key);

    sizes[0] = 6;
    MPI_Type_vector(3, 1, 2, MPI_INT, &column);
    MPI_Type_get_envelope(column, &integers, &addresses, &types, &combiner);
    MPI_Type_create_subarray(2, sizes, part, zeros, MPI_ORDER_FORTRAN, MPI_INT, &block);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &real);

    MPI_Win_create(cell, sizeof cell, sizeof cell[0], MPI_INFO_NULL, node, &window);
    MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &attribute, &found);
    MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT, window);
    MPI_Win_fence(0, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, window);
    MPI_Win_unlock(0, window);
    MPI_Win_free(&window);

    MPI_File_open(MPI_COMM_SELF, rank ? "others" : "first",
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_seek(file, 0, MPI_SEEK_END);
    MPI_File_close(&file);
    MPI_Error_class(MPI_ERR_RANK, &class);

    MPI_Type_free(&block);
    MPI_Type_free(&column);
    MPI_Comm_free(&line);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
