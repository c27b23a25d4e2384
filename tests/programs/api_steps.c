/*
 * Time steps with regions, a metric and questions: api_steps STEPS [LOG_DIRECTORY]
 *
 * What it prints is the same with and without ampl. In the directory it leaves a line per step and rank of
 * what it was told and what it did: window traced work visits bytes
 */
#include <ampl.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int steps = atoi(argv[1]), rank, ranks, token = 0;
    FILE *log = NULL;
    double total = 0;

    ampl_region_begin("MAIN"); /* before MPI_Init, left after it */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 2) {
        char path[4096];
        snprintf(path, sizeof path, "%s/log.%d", argv[2], rank);
        log = fopen(path, "w");
    }
    int step_region = ampl_region_register("STEP"), inner = ampl_region_register("INNER");
    int work = ampl_metric_register("work"), ignored = ampl_metric_register("ignored");
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    for (int step = 0; step < steps; step++) {
        long window = ampl_window();
        int traced = ampl_is_traced();
        long added = 0, bytes = 0;
        int visits = 1 + (step + rank) % 3;

        ampl_region_enter(step_region);
        for (int visit = 0; visit < visits; visit++) {
            ampl_region_enter(inner);
            ampl_region_begin("INNER"); /* within itself: the same visit */
            MPI_Sendrecv(&step, 1, MPI_INT, right, 0, &token, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            ampl_region_end("INNER");
            ampl_region_exit(inner);
            bytes += (long)sizeof(int);
            /* How many visits a neighbour makes is its own affair: the ring needs equal numbers. */
        }
        for (int more = visits; more < 3; more++)
            MPI_Sendrecv(&step, 1, MPI_INT, right, 0, &token, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        for (int part = 0; part < 5; part++) {
            ampl_metric_add(work, step * 10 + rank + part);
            ampl_metric_add(ignored, 1e9);
            /* What is none, or beyond what can be added up, is passed over. */
            ampl_metric_add(work, part % 2 ? NAN : 1e200);
            ampl_metric_add(work, part % 2 ? INFINITY : -INFINITY);
            added += step * 10 + rank + part;
        }
        total += token + added;
        if (traced != ampl_is_traced() || window != ampl_window())
            traced = 99; /* both hold for the whole window */
        ampl_region_exit(step_region);
        if (log)
            fprintf(log, "%ld %d %ld %d %ld\n", window, traced, added, visits, bytes);
    }
    ampl_region_end("MAIN");
    if (log)
        fclose(log);
    for (int turn = 0; turn < ranks; turn++) {
        if (turn == rank) {
            printf("rank %d: %.0f\n", rank, total);
            fflush(stdout);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
