/* Two worlds: the ranks that were started, and two that they spawn.
 *
 * usage: spawn [disconnect]     both sides merge into one communicator, or part again at once
 *
 * Only the root passes a command: the others pass an address where nothing is.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { CHILDREN = 2 };

int main(int argc, char **argv) {
    int rank, ranks, sum = 0, value;
    MPI_Comm other, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&other);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_child = other != MPI_COMM_NULL;
    if (!is_child) {
        int codes[CHILDREN];
        MPI_Comm_spawn(rank == 0 ? argv[0] : (char *)8, argc > 1 ? argv + 1 : MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0,
                       MPI_COMM_WORLD, &other, codes);
    }
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    value = is_child ? 100 + rank : rank + 1;
    if (argc > 1 && !strcmp(argv[1], "disconnect")) {
        MPI_Bcast(&value, 1, MPI_INT, is_child ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, other);
        MPI_Comm_disconnect(&other);
        for (int turn = 0; turn < 10; turn++)
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Intercomm_merge(other, is_child, &all);
        for (int turn = 0; turn < 10; turn++) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
        MPI_Comm_free(&all);
        MPI_Comm_free(&other);
    }
    printf("%s %d of %d: sum %d\n", is_child ? "child" : "parent", rank, ranks, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
