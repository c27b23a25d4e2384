/* Steps in which some ranks have more to do, and all wait for them at the end.
 *
 * usage: lopsided STEPS set|turns|drift SEED
 *
 * set: ranks 1 and RANKS-1 are slow throughout; turns: another rank in every step; drift: each rank in steps of its own that
 * follow each other. What a rank has to do is to sleep, so that it needs no processor.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank, ranks;
    double mine, sum;
    MPI_Init(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 48;
    const char *kind = argc > 2 ? argv[2] : "set";
    unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    seed += 7919u * (unsigned)rank;
    for (int step = 0; step < steps; step++) {
        seed = seed * 1103515245u + 12345u;
        int slow = strcmp(kind, "set") == 0     ? rank == 1 || rank == ranks - 1
                   : strcmp(kind, "turns") == 0 ? rank == step * 5 % ranks
                                                : rank == step * ranks / steps;
        /* 2 ms, up to a millisecond more by chance, and 18 ms where it is slow. */
        struct timespec work = {0, 2000000L + (long)(seed >> 16) % 1000000L + (slow ? 18000000L : 0)};
        nanosleep(&work, NULL);
        mine = rank + step;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%g\n", sum);
    MPI_Finalize();
    return 0;
}
