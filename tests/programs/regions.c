/*
 * Regions of all kinds around calls of MPI: regions STEPS DIRECTORY
 *
 * They nest, recur, cross each other, begin before MPI_Init and on a second thread; one has another name on each rank.
 * At the end each rank writes what it has passed to DIRECTORY/edges.RANK, a line each: `THREAD CALLS enter|exit NAME`,
 * where CALLS are the calls that the thread had made. Edges in the pause have CALLS -1.
 */
#include <ampl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct edge {
    int thread;
    long calls;
    const char *what;
    char name[80];
};

static struct edge *edges;
static int number, paused;
static __thread long calls;
static __thread int thread;

#define MPI(call) (calls++, (call))

static void note(const char *what, const char *name)
{
    struct edge *edge = &edges[number++];
    edge->thread = thread;
    edge->calls = paused ? -1 : calls;
    edge->what = what;
    snprintf(edge->name, sizeof edge->name, "%s", name);
}

static void enter(const char *name)
{
    note("enter", name);
    ampl_region_begin(name);
}

static void leave(const char *name)
{
    note("exit", name);
    ampl_region_end(name);
}

static void recur(int depth)
{
    enter("recur");
    if (depth > 0)
        recur(depth - 1);
    else
        MPI(MPI_Barrier(MPI_COMM_SELF));
    leave("recur");
}

static void *beside(void *unused)
{
    thread = 1;
    MPI(MPI_Barrier(MPI_COMM_SELF));
    enter("beside");
    MPI(MPI_Barrier(MPI_COMM_SELF));
    leave("beside");
    return unused;
}

int main(int argc, char **argv)
{
    int steps = atoi(argv[1]), provided, rank, step_region;
    char own[80];
    pthread_t other;

    edges = malloc(sizeof *edges * (size_t)(40 * steps + 100));
    ampl_region_begin("MAIN");
    MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    snprintf(own, sizeof own, "own region of rank %d", rank);
    step_region = ampl_region_register("STEP");
    for (int step = 0; step < steps; step++) {
        note("enter", "STEP");
        ampl_region_enter(step_region);
        enter(own);
        MPI(MPI_Barrier(MPI_COMM_WORLD));
        leave(own);
        recur(step % 3);
        note("exit", "STEP");
        ampl_region_exit(step_region);
    }
    leave("never entered");
    enter("crossed");
    enter("crossing");
    leave("crossed");
    MPI(MPI_Barrier(MPI_COMM_SELF));
    leave("crossing");

    enter("before the pause");
    MPI(MPI_Pcontrol(0));
    paused = 1;
    leave("before the pause");
    enter("in the pause");
    MPI(MPI_Barrier(MPI_COMM_SELF));
    enter("to and fro");
    leave("to and fro");
    paused = 0;
    MPI(MPI_Pcontrol(1));
    leave("in the pause");
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (provided == MPI_THREAD_MULTIPLE) {
        pthread_create(&other, NULL, beside, NULL);
        pthread_join(other, NULL);
    }
    leave("MAIN");
    MPI_Finalize();
    char path[4096];
    snprintf(path, sizeof path, "%s/edges.%d", argv[2], rank);
    FILE *log = fopen(path, "w");
    for (int at = 0; at < number; at++) {
        struct edge *edge = &edges[at];
        fprintf(log, "%d %ld %s %s\n", edge->thread, edge->calls, edge->what, edge->name);
    }
    fclose(log);
    free(edges);
    return 0;
}
