/* Time steps in which a few ranks, no one knows which beforehand, do far more than the others.
 *
 * usage: spiked STEPS [MICROSECONDS]
 *
 * A rank's work in a step is 1000, give or take 3 %, and 20 times that in one of 60 rank-steps: `spike RANK STEP`
 * on standard output. All messages of a step are sent in it. A step takes so many microseconds at least.
 */
#define _POSIX_C_SOURCE 200809L
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MESSAGES 6

static unsigned mixed(unsigned word) {
    word = (word ^ word >> 16) * 0x7feb352du;
    word = (word ^ word >> 15) * 0x846ca68bu;
    return word ^ word >> 16;
}

int main(int argc, char **argv) {
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 40;
    struct timespec pause = {0, argc > 2 ? 1000L * atoi(argv[2]) : 0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    for (int step = 0; step < steps; step++) {
        unsigned chance = mixed(rank * 7919u + step * 104729u);
        double work = 970 + chance / 61 % 61, all;
        if (chance % 60 == 0) {
            work *= 20;
            printf("spike %d %d\n", rank, step);
        }
        ampl_metric_add(ampl_metric_register("work"), work);
        for (int message = 0; message < MESSAGES; message++) {
            int out = step, in;
            MPI_Sendrecv(&out, 1, MPI_INT, next, message, &in, 1, MPI_INT, previous, message, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        nanosleep(&pause, NULL);
        MPI_Allreduce(&work, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
