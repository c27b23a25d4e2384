/* A quiet half in which ranks wait for each other, and a busy one of calls that wait for nobody.
 *
 * usage: halves ROUNDS BUSY_MS SEED all|some
 *
 * In the quiet half a rank that the seed chooses sleeps while the others wait. In the busy half all ranks, or with `some` the
 * upper half of them, call MPI all the time. Each rank times its own calls and prints, between MPI_Init and MPI_Finalize,
 *   rank R: MPI_NS of WALL_NS
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long in_mpi;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000LL * t.tv_sec + t.tv_nsec;
}

#define TIMED(call) do { long long before = now(); call; in_mpi += now() - before; } while (0)

int main(int argc, char **argv) {
    int rank, ranks, flag;
    MPI_Init(&argc, &argv);
    long long begin = now();
    int rounds = argc > 1 ? atoi(argv[1]) : 50, busy_ms = argc > 2 ? atoi(argv[2]) : 1000;
    unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    int some = argc > 4 && strcmp(argv[4], "some") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < rounds; round++) {
        seed = seed * 1103515245u + 12345u;
        int sleeper = (int)(seed >> 16) % ranks;
        struct timespec pause = {0, 6000000L + (long)(seed >> 16) % 4000000L};
        if (rank == sleeper) nanosleep(&pause, NULL);
        TIMED(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!some || rank >= ranks / 2) {
        volatile double work = 1;
        long long end = now() + 1000000LL * busy_ms;
        for (long calls = 0; now() < end; calls++) {
            for (int i = 0; i < 200; i++) work = work * 1.0000001 + 1e-9;
            TIMED(MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
        }
    }
    TIMED(MPI_Barrier(MPI_COMM_WORLD));
    long long wall = now() - begin;
    printf("rank %d: %lld of %lld\n", rank, in_mpi, wall);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
