/* Calls that never repeat, and only then the memory that ranks share.
 *
 * usage: crowding CALLS KIB [die]
 *   CALLS   exchanges of each rank with itself, of sizes and tags in no order
 *   KIB     KiB of a shared window that each rank allocates behind them, and writes
 *   die     rank 0 is killed by SIGKILL behind that
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, calls = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Aint bytes = (argc > 2 ? atol(argv[2]) : 0) * 1024;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static char out[4096], in[4096];
    unsigned random = 2463534242u + 7919u * rank;
    long sum = 0;
    for (int call = 0; call < calls; call++) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        MPI_Status status;
        int got, size = random % 4096, tag = (random >> 12) % 32000;
        MPI_Sendrecv(out, size, MPI_BYTE, rank, tag, in, 4096, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        sum += got;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win window;
    char *shared;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
    memset(shared, rank + 1, bytes);
    for (MPI_Aint at = 0; at < bytes; at += 4096) sum += shared[at];
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 3 && rank == 0) raise(SIGKILL);
    MPI_Win_free(&window);
    printf("rank %d: %ld\n", rank, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
