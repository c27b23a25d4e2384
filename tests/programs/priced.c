/* Exchanges of each rank with itself, so that none waits for another, for so long by the clock.
 *
 * usage: priced MILLISECONDS even | uneven
 *   even      all that comes between calls is the loop
 *   uneven    and work of any length up to some 50 us, of which no rank knows another's
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXCHANGES 5

static uint64_t state;
static volatile double sink;

static unsigned any(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* As many sizes of work as there are powers of 2 are equally likely. */
static void work(void) {
    unsigned turns = 1u << any() % 14;
    turns += any() % turns;
    for (unsigned turn = 0; turn < turns; turn++) sink += turn;
}

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

int main(int argc, char **argv) {
    int rank, uneven = argc > 2 && strcmp(argv[2], "uneven") == 0;
    double in[8], out[8] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    state = 7 + rank;
    double end = milliseconds() + (argc > 1 ? atof(argv[1]) : 100);
    while (milliseconds() < end) {
        for (int exchange = 0; exchange < EXCHANGES; exchange++) {
            MPI_Request both[2];
            MPI_Irecv(in, 8, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &both[0]);
            if (uneven) work();
            MPI_Isend(out, 8, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &both[1]);
            if (uneven) work();
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    MPI_Finalize();
    return 0;
}
