/*
 * A stencil with timers and a counter of PerfStubs: stencil LIBRARY STEPS
 *
 * LIBRARY is the shared library with PerfStubs in it, such as libadios2_perfstubs.so. A program that is built with
 * PerfStubs includes perfstubs_api/timer.h instead and needs no dlopen.
 * Rank 0 prints how often each timer was passed between MPI_Init and MPI_Finalize: `called NAME TIMES`.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 1000

static void (*begin)(void), (*start)(void *), (*stop)(void *), (*start_named)(const char *), (*stop_named)(const char *),
    (*stop_current)(void), (*sample)(void *, double);
static void *(*timer)(const char *), *(*counter)(const char *);

static void find(void *library, const char *name, void *place)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    memcpy(place, &found, sizeof found);
}

int main(int argc, char **argv)
{
    static double line[LENGTH], next[LENGTH];
    int rank, ranks, steps = argc > 2 ? atoi(argv[2]) : 20, relaxed = 0;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (!library) {
        fprintf(stderr, "usage: stencil LIBRARY STEPS\n");
        return 1;
    }
    find(library, "ps_initialize_", &begin);
    find(library, "ps_timer_create_", &timer);
    find(library, "ps_timer_start_", &start);
    find(library, "ps_timer_stop_", &stop);
    find(library, "ps_start_string_", &start_named);
    find(library, "ps_stop_string_", &stop_named);
    find(library, "ps_stop_current_", &stop_current);
    find(library, "ps_create_counter_", &counter);
    find(library, "ps_sample_counter_", &sample);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    begin();
    void *step_timer = timer("step"), *moved = counter("moved");
    for (int step = 0; step < steps; step++) {
        start(step_timer);
        start_named("exchange");
        MPI_Sendrecv(&line[LENGTH - 2], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &line[0], 1, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        stop_named("exchange");
        sample(moved, 8);
        for (int sweep = 0; sweep <= step % 3; sweep++, relaxed++) {
            start_named("relax");
            for (int at = 1; at < LENGTH - 1; at++)
                next[at] = (line[at - 1] + line[at + 1]) / 2 + rank;
            stop_current();
        }
        stop(step_timer);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("called exchange %d\ncalled relax %d\ncalled step %d\n", steps, relaxed, steps);
    return 0;
}
