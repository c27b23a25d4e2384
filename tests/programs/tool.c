/* Another profiling library, to be preloaded before or behind ampl: it counts, and calls MPI itself.
 *
 * Prints its counts on standard output where MPI_Finalize is entered.
 */
#include <mpi.h>
#include <stdio.h>

static int sends, reductions, own;

int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv), flag;
    MPI_Initialized(&flag); /* through the public name: whoever stands first sees it */
    own += flag;
    return code;
}

int MPI_Sendrecv(const void *out, int count, MPI_Datatype type, int dest, int send_tag, void *in,
                 int in_count, MPI_Datatype in_type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    sends++;
    return PMPI_Sendrecv(out, count, type, dest, send_tag, in, in_count, in_type, source, tag, comm, status);
}

int MPI_Barrier(MPI_Comm comm) {
    int one = 1, all = 0;
    PMPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
    reductions += all;
    return PMPI_Barrier(comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: the tool saw %d exchanges, reduced %d, asked %d\n", rank, sends, reductions, own);
    fflush(stdout);
    return PMPI_Finalize();
}
