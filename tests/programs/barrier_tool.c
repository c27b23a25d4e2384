/* A tool to be preloaded that is linked to no MPI, as tools are that serve several: it loads only where one is.
   Its table is data, which the dynamic linker fills when it loads it, whatever is called. */
#include <stdio.h>

extern int PMPI_Barrier(long);
extern int PMPI_Finalize(void);

struct functions {
    int (*barrier)(long);
    int (*finalize)(void);
};
struct functions mpi = {PMPI_Barrier, PMPI_Finalize};
static long barriers;

int MPI_Barrier(long comm) {
    barriers++;
    return mpi.barrier(comm);
}

int MPI_Finalize(void) {
    printf("tool: %ld barriers\n", barriers);
    fflush(stdout);
    return mpi.finalize();
}
