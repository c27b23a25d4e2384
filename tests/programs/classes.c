/* Ranks in three classes that differ in what they send, window by window.
 *
 * usage: classes SEED WINDOWS
 *
 * A window ends where MPI_Allreduce is entered; that call belongs to the window it opens. Window 0
 * begins when MPI_Init returns, the last one ends where MPI_Finalize is entered, so WINDOWS windows
 * have WINDOWS - 1 reductions between them, and every window but the first starts with 8 bytes of one.
 *
 * In each window a rank sends one message to its right neighbour. Its size depends on the rank's
 * class (rank mod 3: below, at, above the middle), on how far apart the classes are in that third
 * of the run (near, far, near), and on SEED. Rank 0 prints, per window, what all ranks sent:
 * {"window":W,"ranks":N,"sum":BYTES,"sum_sq":BYTES^2}
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIDDLE = 4096, NEAR = 400, FAR = 3000 };

/* splitmix64: the same on every machine. */
static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Bytes of the message of `rank` in `window`: class, plus noise up to an eighth of the distance. */
static int message_bytes(uint64_t seed, int rank, int window, int windows) {
    int distance = window * 3 / windows == 1 ? FAR : NEAR;
    int noise = (int)(mixed(seed * 1000003u + (uint64_t)rank * 4001u + (uint64_t)window) % (uint64_t)(distance / 4));
    return MIDDLE + (rank % 3 - 1) * distance + noise - distance / 8;
}

int main(int argc, char **argv) {
    static char out[MIDDLE + 2 * FAR], in[MIDDLE + 2 * FAR];
    int rank, ranks;
    if (argc != 3) {
        fprintf(stderr, "usage: classes SEED WINDOWS\n");
        return 9;
    }
    uint64_t seed = strtoull(argv[1], NULL, 10);
    int windows = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double sent = 0, all = 0;
    for (int window = 0; window < windows; window++) {
        if (window > 0) MPI_Allreduce(&sent, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        int bytes = message_bytes(seed, rank, window, windows);
        MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % ranks, 1, in, sizeof in, MPI_BYTE, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sent += bytes;
    }
    MPI_Finalize();
    if (rank == 0)
        for (int window = 0; window < windows; window++) {
            long long sum = 0, squares = 0;
            for (int i = 0; i < ranks; i++) {
                long long bytes = message_bytes(seed, i, window, windows) + (window > 0 ? 8 : 0);
                sum += bytes;
                squares += bytes * bytes;
            }
            printf("{\"window\":%d,\"ranks\":%d,\"sum\":%lld,\"sum_sq\":%lld}\n", window, ranks, sum, squares);
        }
    return 0;
}
