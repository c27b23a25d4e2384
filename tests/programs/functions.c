/*
 * Functions that a compiler instruments, around calls of MPI: functions STEPS TINY
 *
 * At the end rank 0 prints how often each was called between MPI_Init and MPI_Finalize on the main thread, outside of
 * calls of MPI: `called NAME TIMES`. `tiny` is called TINY times a step.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAIN __attribute__((noinline, no_instrument_function))
#define SEEN __attribute__((noinline))

static volatile long in_solve, in_recur, in_tiny, sum;
static volatile int early, late;

SEEN static void tiny(void)
{
    in_tiny++;
}

SEEN static void recur(int depth)
{
    in_recur++;
    if (depth > 0)
        recur(depth - 1);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    sum += depth;
}

SEEN void solve(int step)
{
    in_solve++;
    recur(step % 4);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The hooks are called before main, too. */
__attribute__((constructor)) SEEN static void begin(void)
{
    early++;
    tiny();
    in_tiny = 0;
}

__attribute__((destructor)) SEEN static void end(void)
{
    late++;
}

/* Within a call of MPI. */
SEEN static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int at = 0; at < *length; at++)
        ((int *)inout)[at] += ((int *)in)[at];
    tiny();
    in_tiny--;
}

/* On a thread that never calls MPI. */
SEEN static void *beside(void *unused)
{
    for (int turn = 0; turn < 100; turn++)
        sum += turn;
    return unused;
}

PLAIN static void print(const char *name, long times)
{
    printf("called %s %ld\n", name, times);
}

int main(int argc, char **argv)
{
    int steps = atoi(argv[1]), tinies = atoi(argv[2]), rank, one = 1, all = 0;
    pthread_t other;
    MPI_Op op;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op_create(add, 1, &op);
    pthread_create(&other, NULL, beside, NULL);
    for (int step = 0; step < steps; step++) {
        solve(step);
        for (int turn = 0; turn < tinies; turn++)
            tiny();
    }
    MPI_Allreduce(&one, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
    pthread_join(other, NULL);
    MPI_Op_free(&op);
    long counted = in_tiny;
    MPI_Finalize();
    tiny();
    if (rank == 0) {
        print("solve", in_solve);
        print("recur", in_recur);
        print("tiny", counted);
        printf("sum of ones %d\n", all);
    }
    return early == 1 ? 0 : 1;
}
