/* Bytes to and from a file, and to and from memory of other ranks: known numbers of each.
 *
 * usage: moves FILE
 */
#include <mpi.h>
#include <string.h>

enum { INTS = 100 };

static void files(const char *name, int rank, int ranks) {
    static int data[INTS];
    MPI_File file;
    MPI_Request request;
    MPI_Offset at = (MPI_Offset)rank * INTS * sizeof(int), end = (MPI_Offset)ranks * INTS * sizeof(int);
    MPI_File_open(MPI_COMM_WORLD, (char *)name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    /* 400 + 400 + 200 + 80 + 40 bytes. */
    MPI_File_write_at(file, at, data, INTS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, at, data, INTS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, at, data, INTS / 2, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_write_at_all_begin(file, at, data, 10, MPI_DOUBLE);
    MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
    MPI_File_seek(file, at, MPI_SEEK_SET);
    MPI_File_write(file, data, 10, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    /* 400 + 28 + 12 bytes. */
    MPI_File_read_at_all(file, at, data, INTS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, at, data, 7, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_seek(file, at, MPI_SEEK_SET);
    MPI_File_read(file, data, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_size(file, end);
    MPI_File_close(&file);
}

static void windows(int rank, int ranks) {
    static int mine[INTS], data[INTS], old[INTS];
    int to = (rank + 1) % ranks, one = 1, none = 0;
    MPI_Win win;
    MPI_Win_create(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    /* Put: 40 + 20 + 8 + 4 + 4 bytes. Got: 60 + 8 + 12 + 4 + 4 + 4 bytes. */
    MPI_Put(data, 10, MPI_INT, to, 0, 10, MPI_INT, win);
    MPI_Put(data, 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, win);
    MPI_Accumulate(data, 5, MPI_INT, to, 20, 5, MPI_INT, MPI_SUM, win);
    MPI_Get(old, 15, MPI_INT, to, 40, 15, MPI_INT, win);
    MPI_Win_flush_all(win);
    MPI_Get_accumulate(data, 2, MPI_INT, old, 2, MPI_INT, to, 60, 2, MPI_INT, MPI_SUM, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, old, 3, MPI_INT, to, 70, 3, MPI_INT, MPI_NO_OP, win);
    MPI_Fetch_and_op(&one, old, MPI_INT, to, 80, MPI_SUM, win);
    MPI_Fetch_and_op(&one, old, MPI_INT, to, 81, MPI_NO_OP, win);
    MPI_Compare_and_swap(&one, &none, old, MPI_INT, to, 90, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    int rank, ranks, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1) files(argv[1], rank, ranks);
    windows(rank, ranks);
    /* The only message of the program. */
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
