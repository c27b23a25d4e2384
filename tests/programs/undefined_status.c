/* Statuses of which MPI defines no source and no tag, in memory that holds others.
 *
 * usage: undefined_status   on 2 ranks or more; calls with tag 5 tell of a message, and no others do
 */
#include <mpi.h>
#include <string.h>

#define SLOTS 4

static int rank, ranks, in[SLOTS], out;
static MPI_Status statuses[SLOTS];

/* Rank 1, tag 7, or what is as bad. */
static MPI_Status *stale(int fill) {
    for (int slot = 0; slot < SLOTS; slot++) {
        memset(&statuses[slot], fill, sizeof statuses[slot]);
        if (!fill) statuses[slot].MPI_SOURCE = 1, statuses[slot].MPI_TAG = 7;
    }
    return statuses;
}

static int tells_nothing(void *state, MPI_Status *status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int done(void *state) { return (void)state, MPI_SUCCESS; }
static int dropped(void *state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

static void turn(int fill, int before, int after) {
    MPI_Request requests[SLOTS];
    int flag, index, count, indices[SLOTS];
    /* A message, and the send of one. */
    MPI_Irecv(&in[0], 1, MPI_INT, before, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, after, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], stale(fill));
    MPI_Test_cancelled(&statuses[0], &flag);
    MPI_Wait(&requests[0], stale(fill));
    /* Cancelled: alone, ignored, among others, in part. */
    MPI_Irecv(&in[0], 1, MPI_INT, before, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Test(&requests[0], &flag, stale(fill));
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], stale(fill));
    MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int slot = 0; slot < 3; slot++)
        MPI_Irecv(&in[slot], 1, MPI_INT, before, slot == 1 ? 5 : 6, MPI_COMM_WORLD, &requests[slot]);
    MPI_Isend(&out, 1, MPI_INT, after, 5, MPI_COMM_WORLD, &requests[3]);
    MPI_Cancel(&requests[0]);
    MPI_Cancel(&requests[2]);
    MPI_Waitall(SLOTS, requests, stale(fill));
    MPI_Irecv(&in[0], 1, MPI_INT, before, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Waitsome(1, requests, &count, indices, stale(fill));
    MPI_Irecv(&in[0], 1, MPI_INT, before, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Waitany(1, requests, &index, stale(fill));
    /* No receives at all. */
    MPI_Grequest_start(tells_nothing, done, dropped, NULL, &requests[0]);
    MPI_Grequest_complete(requests[0]);
    MPI_Wait(&requests[0], stale(fill));
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], stale(fill));
    MPI_Iprobe(before, 6, MPI_COMM_WORLD, &flag, stale(fill));
    /* Made where nobody looks. */
    PMPI_Isend(&out, 1, MPI_INT, after, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv(&in[0], 1, MPI_INT, before, 5, MPI_COMM_WORLD, stale(fill));
    MPI_Wait(&requests[1], stale(fill));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int times = 0; times < 3; times++) turn(times == 1 ? 0x68 : 0, (rank + ranks - 1) % ranks, (rank + 1) % ranks);
    MPI_Finalize();
    return 0;
}
