/* Ranks with a known share of work: in every step each is busy for its time, then all meet in MPI_Allreduce.
 *
 * usage: loop_imbalance STEPS UNIT SLOW
 *   UNIT  how long the slow rank is busy in a step, microseconds; the others a quarter of that
 *   SLOW  the slow rank; in every fifth step it is the next one
 *
 * Rank 0 prints a line per step: how long each rank was out of MPI by its own clock, microseconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

/* Sleeps, so that ranks may share processors: a rank outside of MPI computes as far as ampl can tell. */
static void work(double microseconds) {
    long nanoseconds = (long)(microseconds * 1e3);
    nanosleep(&(struct timespec){nanoseconds / 1000000000, nanoseconds % 1000000000}, NULL);
}

int main(int argc, char **argv) {
    int rank, ranks, one = 1, all, steps = atoi(argv[1]), unit = atoi(argv[2]), slow = atoi(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *mine = calloc(steps, sizeof *mine), *everyones = calloc(steps * ranks, sizeof *everyones);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        double begin = now();
        work(rank == (step % 5 == 4 ? (slow + 1) % ranks : slow) ? unit : unit / 4);
        mine[step] = now() - begin;
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Gather(mine, steps, MPI_DOUBLE, everyones, steps, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int step = 0; rank == 0 && step < steps; step++) {
        printf("{\"step\":%d,\"compute\":[", step);
        for (int r = 0; r < ranks; r++) printf("%s%.1f", r ? "," : "", everyones[r * steps + step]);
        printf("]}\n");
    }
    fflush(stdout);
    MPI_Finalize();
    return all == ranks ? 0 : 9;
}
