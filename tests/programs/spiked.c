/* Time steps in which a few ranks, no one knows which beforehand, do far more than the others.
 *
 * usage: spiked STEPS [MICROSECONDS [SWEEPS [SEED]]]
 *
 * A rank's work in a step is 1000, give or take 3 %, and 20 times that in one of 60 rank-steps, others for each seed:
 * `spike RANK STEP` on standard output. All messages of a step are sent in it. A rank sleeps so many microseconds in
 * a step, and computes: for a work of 1000 so many sweeps over a line of 1000 points, of some half a microsecond each.
 * Rank 0 prints `step NANOSECONDS` for each at the end.
 */
#define _POSIX_C_SOURCE 200809L
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MESSAGES 6
#define POINTS 1000

static unsigned mixed(unsigned word) {
    word = (word ^ word >> 16) * 0x7feb352du;
    word = (word ^ word >> 15) * 0x846ca68bu;
    return word ^ word >> 16;
}

static void compute(long sweeps) {
    static double volatile kept;
    static double line[2][POINTS];
    for (long sweep = 0; sweep < sweeps; sweep++) {
        double *from = line[sweep % 2], *to = line[(sweep + 1) % 2];
        for (int point = 1; point < POINTS - 1; point++) {
            to[point] = (from[point - 1] + from[point] + from[point + 1]) * (1.0 / 3) + 1;
        }
    }
    kept = line[0][POINTS / 2];
}

int main(int argc, char **argv) {
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 40;
    long microseconds = argc > 2 ? atol(argv[2]) : 0;
    struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    double sweeps = argc > 3 ? atof(argv[3]) : 0, *times = calloc(steps + 1, sizeof *times);
    unsigned seed = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    if (!times) {
        return 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    for (int step = 0; step < steps; step++) {
        double begin = MPI_Wtime();
        unsigned chance = mixed(rank * 7919u + step * 104729u + mixed(seed));
        double work = 970 + chance / 61 % 61, all;
        if (chance % 60 == 0) {
            work *= 20;
            printf("spike %d %d\n", rank, step);
        }
        ampl_metric_add(ampl_metric_register("work"), work);
        compute((long)(sweeps * work / 1000));
        for (int message = 0; message < MESSAGES; message++) {
            int out = step, in;
            MPI_Sendrecv(&out, 1, MPI_INT, next, message, &in, 1, MPI_INT, previous, message, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        if (microseconds > 0) {
            nanosleep(&pause, NULL);
        }
        MPI_Allreduce(&work, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        times[step] = MPI_Wtime() - begin;
    }
    for (int step = 0; rank == 0 && step < steps; step++) {
        printf("step %.0f\n", 1e9 * times[step]);
    }
    free(times);
    MPI_Finalize();
    return 0;
}
