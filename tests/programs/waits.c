/* Steps in which ranks wait for each other, for a cause that is known.
 *
 * usage: waits KIND STEPS MILLIS RANKS
 *
 * In each step all ranks sleep 2 ms, and those of RANKS, `2` or `2,3`, MILLIS more. Then, by KIND:
 *   allreduce  all reduce
 *   fence      each rank puts a number into the next one's window, and all separate epochs by a fence
 *   sender     rank 2 sends to rank 0, which receives; all meet in a barrier
 *   isend      the same, but rank 0 has posted the receive before, and waits for it
 *   receiver   rank 0 sends synchronously to rank 2
 *   bcast      rank 2 broadcasts; all meet in a barrier every 8th step
 *   scatter    rank 2 scatters; all meet in a barrier every 8th step
 *   gather     rank 0 gathers; all meet in a barrier every 8th step
 *   reduce     all reduce to rank 0; they meet in a barrier every 8th step
 *   rows       the halves of the ranks reduce, each for itself
 *   grid       the rows of a grid of two rows meet in a barrier, each for itself
 *   copies     each half reduces on a copy of its communicator
 *   rowfence   the halves have windows of their own, and separate epochs by a fence
 *   ring       each rank exchanges with its neighbours
 *   pipeline   each rank but 0 receives from the rank before, sleeps MILLIS, and sends to the next; there is no other pause
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORLD MPI_COMM_WORLD

static void rest(long micros) {
    struct timespec pause = {micros / 1000000, micros % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
    int rank, ranks, slow = 0, in = 0, out = 1;
    double mine, sum, *held;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Comm part = MPI_COMM_NULL;
    int all[64] = {0};
    MPI_Init(&argc, &argv);
    const char *kind = argv[1];
    int steps = atoi(argv[2]);
    long micros = 1000 * atol(argv[3]);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    for (const char *at = argc > 4 ? argv[4] : ""; *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL))
        slow |= atoi(at) == rank;
    if (strcmp(kind, "fence") == 0) {
        MPI_Win_allocate(sizeof mine, sizeof mine, MPI_INFO_NULL, WORLD, &held, &window);
        MPI_Win_fence(0, window);
    }
    if (strcmp(kind, "rows") == 0 || strcmp(kind, "copies") == 0 || strcmp(kind, "rowfence") == 0)
        MPI_Comm_split(WORLD, 2 * rank / ranks, rank, &part);
    if (strcmp(kind, "grid") == 0) {
        int dims[2] = {2, ranks / 2}, periods[2] = {0, 0}, kept[2] = {0, 1};
        MPI_Comm grid;
        MPI_Cart_create(WORLD, 2, dims, periods, 0, &grid);
        MPI_Cart_sub(grid, kept, &part);
    }
    if (strcmp(kind, "copies") == 0) {
        MPI_Comm before = part;
        MPI_Comm_dup(before, &part);
    }
    if (strcmp(kind, "rowfence") == 0) {
        MPI_Win_allocate(sizeof mine, sizeof mine, MPI_INFO_NULL, part, &held, &window);
        MPI_Win_fence(0, window);
    }
    MPI_Barrier(WORLD);
    for (int step = 0; step < steps; step++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (strcmp(kind, "isend") == 0 && rank == 0) MPI_Irecv(&in, 1, MPI_INT, 2, 0, WORLD, &request);
        if (strcmp(kind, "pipeline") == 0) {
            if (rank > 0) MPI_Recv(&in, 1, MPI_INT, rank - 1, 0, WORLD, MPI_STATUS_IGNORE);
            rest(micros);
            if (rank + 1 < ranks) MPI_Send(&out, 1, MPI_INT, rank + 1, 0, WORLD);
            continue;
        }
        rest(2000 + (slow ? micros : 0));
        if (strcmp(kind, "allreduce") == 0) {
            mine = rank;
            MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
        } else if (strcmp(kind, "fence") == 0) {
            mine = rank;
            MPI_Put(&mine, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, 1, MPI_DOUBLE, window);
            MPI_Win_fence(0, window);
        } else if (strcmp(kind, "sender") == 0) {
            if (rank == 2) MPI_Send(&out, 1, MPI_INT, 0, 0, WORLD);
            if (rank == 0) MPI_Recv(&in, 1, MPI_INT, 2, 0, WORLD, MPI_STATUS_IGNORE);
            MPI_Barrier(WORLD);
        } else if (strcmp(kind, "isend") == 0) {
            if (rank == 2) MPI_Send(&out, 1, MPI_INT, 0, 0, WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Barrier(WORLD);
        } else if (strcmp(kind, "receiver") == 0) {
            if (rank == 0) MPI_Ssend(&out, 1, MPI_INT, 2, 0, WORLD);
            if (rank == 2) MPI_Recv(&in, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        } else if (strcmp(kind, "bcast") == 0) {
            MPI_Bcast(&out, 1, MPI_INT, 2, WORLD);
            if (step % 8 == 7) MPI_Barrier(WORLD);
        } else if (strcmp(kind, "scatter") == 0) {
            MPI_Scatter(all, 1, MPI_INT, &out, 1, MPI_INT, 2, WORLD);
            if (step % 8 == 7) MPI_Barrier(WORLD);
        } else if (strcmp(kind, "gather") == 0) {
            MPI_Gather(&out, 1, MPI_INT, all, 1, MPI_INT, 0, WORLD);
            if (step % 8 == 7) MPI_Barrier(WORLD);
        } else if (strcmp(kind, "reduce") == 0) {
            mine = rank;
            MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, WORLD);
            if (step % 8 == 7) MPI_Barrier(WORLD);
        } else if (strcmp(kind, "rows") == 0 || strcmp(kind, "copies") == 0) {
            mine = rank;
            MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, part);
        } else if (strcmp(kind, "grid") == 0) {
            MPI_Barrier(part);
        } else if (strcmp(kind, "rowfence") == 0) {
            MPI_Win_fence(0, window);
        } else {
            int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
            MPI_Sendrecv(&out, 1, MPI_INT, next, 0, &in, 1, MPI_INT, before, 0, WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (window != MPI_WIN_NULL) MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
