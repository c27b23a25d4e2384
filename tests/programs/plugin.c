/* A plug-in that calls MPI, for dlopened.c. With CONSTRUCTOR it initialises MPI while the loader is at work. */
#include <mpi.h>
#include <stdio.h>

static void begin(void) { MPI_Init(NULL, NULL); }

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void construct(void) { begin(); }
#endif

/* The version, which may be asked for before MPI_Init. */
int asks(void) {
    int version, subversion;
    MPI_Get_version(&version, &subversion);
    return version;
}

int run(void) {
    int rank, ranks, sum, version, subversion;
    MPI_Get_version(&version, &subversion);
#ifndef CONSTRUCTOR
    begin();
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 10; turn++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d\n", rank, ranks, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
