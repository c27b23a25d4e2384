/* Collectives with another count for each rank: uneven.c [turns]. */
#include <mpi.h>
#include <stdlib.h>

enum { MOST = 64 };

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 10, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static int out[MOST * MOST], in[MOST * MOST];
    int sends[MOST], receives[MOST], from[MOST], to[MOST], all[MOST], places[MOST];
    MPI_Datatype types[MOST], pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int turn = 0; turn < turns; turn++) {
        for (int other = 0, sent = 0, received = 0, sum = 0; other < size; other++) {
            sends[other] = (rank * 7 + other * 3 + turn) % 5;
            receives[other] = (other * 7 + rank * 3 + turn) % 5;
            all[other] = 1 + other % 3;
            from[other] = sent, to[other] = received, places[other] = sum;
            sent += sends[other], received += receives[other], sum += all[other];
            types[other] = MPI_INT;
        }
        MPI_Alltoallv(out, sends, from, MPI_INT, in, receives, to, MPI_INT, MPI_COMM_WORLD);
        for (int other = 0; other < size; other++)
            from[other] *= sizeof(int), to[other] *= sizeof(int);
        MPI_Alltoallw(out, sends, from, types, in, receives, to, types, MPI_COMM_WORLD);
        MPI_Gatherv(out, all[rank], pair, in, all, places, pair, turn % size, MPI_COMM_WORLD);
        MPI_Scatterv(out, all, places, MPI_INT, in, all[rank], MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allgatherv(out, all[rank], MPI_INT, in, all, places, MPI_INT, MPI_COMM_WORLD);
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, in, all, places, MPI_INT, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Gatherv(MPI_IN_PLACE, 0, MPI_INT, in, all, places, MPI_INT, 0, MPI_COMM_WORLD);
        else
            MPI_Gatherv(out, all[rank], MPI_INT, NULL, NULL, NULL, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
