/* A program that calls MPI through the library of wrappers.c, but for its beginning and end: wrapped TURNS
   Of the wrappers that it calls, one has two callers. */
#include <mpi.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, noclone))

int xx_total(const double *in, double *out);
int xx_shift(const double *out, double *in, int to, int from);
int xx_meet(void);

static int rank, ranks, turns;

static KEEP int solve(void)
{
    double in[2] = {1, rank}, out[2];
    int bad = 0;
    for (int turn = 0; turn < turns; turn++)
        bad += xx_total(in, out);
    return bad + xx_meet();
}

static KEEP int halo(void)
{
    double in[2], out[2] = {1, rank};
    int bad = 0;
    for (int turn = 0; turn < turns; turn++)
        bad += xx_shift(out, in, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
    return bad + xx_meet();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    turns = argc > 1 ? atoi(argv[1]) : 12;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int bad = solve() + halo();
    MPI_Finalize();
    return bad;
}
