/* Many calls in a short time that wait for nobody, then few.
 *
 * usage: call_bursts BUSY_MS CALM_MS
 *
 * It is busy for so long by its own processor time, and calm by the clock: other programs do not change what it calls.
 *
 * Each rank prints how often it called MPI_Isend, MPI_Irecv, MPI_Waitall and MPI_Iprobe.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, ranks;
static long exchanges, probes;

static void exchange(MPI_Datatype some) {
    static double in[64], out[64];
    MPI_Request both[2];
    MPI_Irecv(in, 1, some, 0, 3, MPI_COMM_SELF, &both[0]);
    MPI_Isend(out, 1, some, 0, 3, MPI_COMM_SELF, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    exchanges++;
}

static double milliseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

/*
 * With pauses, over when it is for rank 0, and no rank gets far ahead of the other. Without, none waits for another:
 * on a busy machine it would do little else.
 */
static void phase(double length, long least, int pause_ms) {
    clockid_t clock = pause_ms ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double end = milliseconds(clock) + length;
    least += exchanges;
    for (int go = 1; go;) {
        /* What later calls are understood by must be followed all the time: a type of another size each time. */
        MPI_Datatype some;
        MPI_Type_contiguous(1 + exchanges % 64, MPI_DOUBLE, &some);
        MPI_Type_commit(&some);
        for (int round = 0; round < (pause_ms ? 1 : 5000); round++) {
            int flag;
            exchange(some);
            MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            probes++;
        }
        MPI_Type_free(&some);
        go = milliseconds(clock) < end || exchanges < least;
        if (!pause_ms) continue;
        nanosleep(&(struct timespec){0, pause_ms * 1000000L}, NULL);
        if (rank) go = 0;
        MPI_Allreduce(MPI_IN_PLACE, &go, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    MPI_Request again[2];
    int in = -1, out;
    if (argc < 3) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = rank;
    /* Made at one time, started at others. */
    MPI_Recv_init(&in, 1, MPI_INT, (rank + ranks - 1) % ranks, 4, MPI_COMM_WORLD, &again[0]);
    MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % ranks, 4, MPI_COMM_WORLD, &again[1]);
    phase(atof(argv[1]), 100000, 0);
    MPI_Startall(2, again);
    /* It is calm for as long on all ranks. */
    MPI_Barrier(MPI_COMM_WORLD);
    phase(atof(argv[2]), 0, 50);
    MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
    MPI_Startall(2, again);
    MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
    MPI_Request_free(&again[0]);
    MPI_Request_free(&again[1]);
    printf("rank %d: %ld %ld %ld %ld, %d\n", rank, exchanges, exchanges, exchanges + 2, probes, in);
    MPI_Finalize();
    return 0;
}
