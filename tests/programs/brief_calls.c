/* Calls MPI in passing, then asks for a message that never comes; prints how often the processor was given away
 * meanwhile, first and then, as yield_shim counts it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 300 };

int main(int argc, char **argv) {
    int rank, flag, in;
    MPI_Request request = MPI_REQUEST_NULL;
    long (*given_away)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "turns_given_away");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    long begin = given_away();
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* nothing to ask for: MPI does not look */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    long passing = given_away() - begin;
    MPI_Irecv(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
    for (int turn = 0; turn < TURNS; turn++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    long asking = given_away() - begin - passing;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("%ld %ld\n", passing, asking);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
