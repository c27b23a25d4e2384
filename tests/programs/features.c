/* Asks at run time what the MPI library has.
 *
 * usage: features     prints, per function, how often it was found: as a weak symbol, by dlsym
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#pragma weak MPI_Session_init
#pragma weak MPI_Allreduce_c
#pragma weak MPI_Abi_get_version
#pragma weak MPI_Barrier

/* Prototypes of functions that this header need not have. */
extern int MPI_Session_init();
extern int MPI_Allreduce_c();
extern int MPI_Abi_get_version();

int main(void) {
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#define ASK(name) \
    if (rank == 0) printf(#name ": %d %d\n", MPI_##name != 0, dlsym(RTLD_DEFAULT, "MPI_" #name) != NULL)
    ASK(Session_init);
    ASK(Allreduce_c);
    ASK(Abi_get_version);
    ASK(Barrier);
    MPI_Finalize();
    return 0;
}
