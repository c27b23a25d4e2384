/* One call on several ways: time steps as a loop, as a function that calls itself, or two that call each other; two
 * callers of one function; a call from a stack that is not the thread's. `paths HOW STEPS` */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* A function of its own, whose last call is no jump. */
#define APART __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

static int rank, ranks;

APART static void exchange(void)
{
    /* Not on the stack: a buffer is told by where it is. */
    static double out, in, sum;
    out = rank;
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, (rank + 1) % ranks, 7, &in, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 7,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&in, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    RETURNS;
}

APART static void step(int left)
{
    char some[64];
    memset(some, left, sizeof some);
    __asm__ volatile("" ::"r"(some) : "memory");
    exchange();
    if (left > 1)
        step(left - 1);
    RETURNS;
}

APART static void odd(int left);

APART static void even(int left)
{
    exchange();
    if (left > 1)
        odd(left - 1);
    RETURNS;
}

APART static void odd(int left)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (left > 1)
        even(left - 1);
    RETURNS;
}

/* Both branches, and the calls at the leaves only. */
APART static void tree(int left)
{
    if (left > 1) {
        tree(left / 2);
        tree(left - left / 2);
    } else {
        exchange();
    }
    RETURNS;
}

APART static void near(void)
{
    exchange();
    RETURNS;
}

/* Not the same code: the compiler would make one function of both. */
APART static void far(void)
{
    exchange();
    __asm__ volatile("nop" ::: "memory");
}

static ucontext_t here, there;

APART static void elsewhere(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    RETURNS;
}

static void on_another_stack(void)
{
    size_t bytes = 1 << 18;
    void *stack = malloc(bytes);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = bytes;
    there.uc_link = &here;
    makecontext(&there, elsewhere, 0);
    swapcontext(&here, &there);
    free(stack);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "loop";
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!strcmp(how, "recursive"))
        step(steps);
    else if (!strcmp(how, "mutual"))
        even(steps);
    else if (!strcmp(how, "tree"))
        tree(steps);
    for (int i = 0; i < steps; i++) {
        if (!strcmp(how, "loop"))
            step(1);
        else if (!strcmp(how, "ways") || !strcmp(how, "dies"))
            i % 3 ? near() : far();
        else if (!strcmp(how, "elsewhere"))
            on_another_stack();
    }
    if (!strcmp(how, "dies"))
        abort();
    MPI_Finalize();
    return 0;
}
