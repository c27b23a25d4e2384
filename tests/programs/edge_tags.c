/* Makes a graph after some nonblocking collectives. Open MPI up to 4.1.8 takes a message of one for the graph's edges,
 * and waits for ever, when 23 or 24 came before (open-mpi/ompi, issue 13918); a duplicate of the world counts as 3.
 *
 * usage: edge_tags COLLECTIVES
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

/* Takes longer to send than the others need to get on. */
enum { EDGES = 1000000 };

int main(int argc, char **argv) {
    int before = argc > 1 ? atoi(argv[1]) : 0, rank, ranks, source = 0, degree = EDGES, in, out, weighted;
    MPI_Request request;
    MPI_Comm graph;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int collective = 0; collective < before; collective++) {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    /* The last rank names the edges from rank 0 to itself, the others name none. */
    int *targets = calloc(EDGES, sizeof(int)), *weights = calloc(EDGES, sizeof(int));
    MPI_Dist_graph_create(MPI_COMM_WORLD, rank == ranks - 1, &source, &degree, targets, weights, MPI_INFO_NULL, 0,
                          &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    printf("%d in, %d out\n", in, out);
    MPI_Comm_free(&graph);
    free(targets);
    free(weights);
    MPI_Finalize();
    return 0;
}
