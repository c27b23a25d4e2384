/* Ranks that add up, 50 times; then the rank that ARGUMENT names stops itself outside of MPI, until it is continued, and
   all add up 50 times more. Rank 0 prints the last sum. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int add_up(int times) {
    int sum = 0;
    for (int turn = 0; turn < times; turn++) {
        int one = 1;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    return sum;
}

int main(int argc, char **argv) {
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    add_up(50);
    if (argc > 1 && rank == atoi(argv[1])) raise(SIGSTOP);
    sum = add_up(50);
    if (rank == 0) printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
