/*
 * A program that follows ampl's decisions as a tracing tool would: follows DIRECTORY WINDOWS early|late
 *
 * Every rank writes into DIRECTORY/told.RANK what it was told, `WINDOW 0|1` a line. Windows end at MPI_Barrier.
 */
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int dummy;
static long windows[10000];
static int kept[10000], told;

static void decided(long window, int traced, void *data)
{
    if (data != &dummy || told == 10000)
        abort();
    windows[told] = window;
    kept[told++] = traced;
}

int main(int argc, char **argv)
{
    int rank, one = 1, sum = 0, late = argc > 3 && strcmp(argv[3], "late") == 0;
    char path[1000];

    if (!late)
        ampl_on_decision(decided, &dummy);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (late)
        ampl_on_decision(decided, &dummy);
    for (int window = 0; window < atoi(argv[2]); window++) {
        for (int turn = 0; turn < 3; turn++)
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    snprintf(path, sizeof path, "%s/told.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    for (int at = 0; at < told; at++)
        fprintf(file, "%ld %d\n", windows[at], kept[at]);
    fclose(file);
    if (rank == 0)
        printf("sum %d\n", sum);
    return 0;
}
