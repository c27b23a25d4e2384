/* A start-up, a solver and a wind-down, each as long as its arguments say: `phased SETUP STEPS OUTPUTS PAUSE_US`.
 *
 * In the start-up rank 0 reads its own executable in SETUP parts and broadcasts each; in the wind-down it gathers OUTPUTS times
 * and writes what it has got. A step of the solver exchanges with both neighbours, and adds up over all. Everything takes
 * PAUSE_US, so that the three take times that go by the arguments. Every rank prints when the solver ran, by its own clock:
 * `solver FROM_NS UNTIL_NS of WALL_NS`, nanoseconds since MPI_Init returned.
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PART 4096
/* Too long to be sent before it is asked for: who sends waits. */
#define BLOCK (1 << 18)

static int rank, size;
static char part[PART], block[BLOCK];

static void read_input(long parts, long pause_us) {
    FILE *file = rank == 0 ? fopen("/proc/self/exe", "rb") : NULL;
    for (long i = 0; i < parts; i++) {
        if (file && fread(part, 1, PART, file) < PART) rewind(file);
        if (rank == 0) usleep(pause_us);
        MPI_Bcast(part, PART, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (file) fclose(file);
}

static double solve(long steps, long pause_us) {
    double left = rank, right = 0, sum = 0;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (long i = 0; i < steps; i++) {
        MPI_Request both[2];
        MPI_Status ended[2];
        MPI_Irecv(&right, 1, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(&left, 1, MPI_DOUBLE, to, 1, MPI_COMM_WORLD, &both[1]);
        usleep(pause_us);
        MPI_Waitall(2, both, ended);
        left = right / 2 + 1;
        MPI_Allreduce(&left, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return sum;
}

static void write_output(long outputs, long pause_us) {
    char *all = rank == 0 ? malloc((size_t)size * BLOCK) : NULL;
    for (long i = 0; i < outputs; i++) {
        MPI_Gather(block, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (rank == 0) usleep(pause_us);
    }
    free(all);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double begin = MPI_Wtime();
    if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 2);
    long setup = atol(argv[1]), steps = atol(argv[2]), outputs = atol(argv[3]), pause_us = atol(argv[4]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    read_input(setup, pause_us);
    double from = MPI_Wtime();
    double sum = solve(steps, pause_us);
    double until = MPI_Wtime();
    write_output(outputs, pause_us);
    double end = MPI_Wtime();
    printf("solver %.0f %.0f of %.0f\n", 1e9 * (from - begin), 1e9 * (until - begin), 1e9 * (end - begin));
    if (rank == 0 && sum < 0) printf("%g\n", sum);
    MPI_Finalize();
    return 0;
}
