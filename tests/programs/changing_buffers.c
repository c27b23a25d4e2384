/* Messages from buffers that change: in turns, by rank, at random, allocated for each; every call is in the log.
 *
 * usage: changing_buffers LOG ROUNDS
 */
#include "call.h"

#define SENT "buf:b count:i datatype:t dest:r tag:g comm:c"
#define RECEIVED "buf:b count:i datatype:t source:r tag:g comm:c"
#define BOTH "sendbuf:b sendcount:i sendtype:t dest:r sendtag:g recvbuf:b recvcount:i recvtype:t source:r recvtag:g comm:c >status:s"
#define WORLD MPI_COMM_WORLD

enum { BUFFERS = 8, BYTES = 64, BLOCKS = 5 };

static char statics[BUFFERS][BYTES];

int main(int argc, char **argv) {
    char stack[2][BYTES], *heap[BUFFERS], *blocks[BLOCKS] = {0};
    int right, left, rounds;
    MPI_Request requests[2];
    MPI_Status status;
    if (argc < 3) return 9;
    begin(argc, argv);
    rounds = atoi(argv[2]);
    right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    for (int i = 0; i < BUFFERS; i++) heap[i] = malloc(BYTES * (1 + i));
    srand(rank + 1);
    for (int round = 0; round < rounds; round++) {
        char *given = heap[round % (2 + rank % 3)], *taken = rand() % 4 ? stack[round % 2] : statics[rand() % BUFFERS];
        CALL(MPI_Sendrecv, BOTH, given, BYTES, MPI_CHAR, right, 1, taken, BYTES, MPI_CHAR, left, 1, WORLD, &status);
        /* Equal calls but for their buffers are live at once. */
        for (int i = 0; i < 2; i++)
            CALL(MPI_Irecv, RECEIVED " >request:v", statics[(round + i) % 3], BYTES, MPI_CHAR, left, 2, WORLD, &requests[i]);
        for (int i = 0; i < 2; i++) CALL(MPI_Send, SENT, heap[i * (round % 5)], BYTES, MPI_CHAR, right, 2, WORLD);
        for (int i = 0; i < 2; i++) CALL(MPI_Wait, "~request:q >status:s", &requests[i], &status);
        /* The more of them the higher the rank. */
        for (int i = 0; i < 1 + (rank + round) % 3; i++) {
            int block = rand() % BLOCKS;
            free(blocks[block]);
            blocks[block] = malloc(BYTES + rand() % 4000);
            CALL(MPI_Send, SENT, blocks[block], BYTES, MPI_CHAR, MPI_PROC_NULL, round % 2, WORLD);
        }
        if (round % 7 == rank)
            CALL(MPI_Bcast, "buffer:b count:i datatype:t root:r comm:c", round % 2 ? heap[7] : statics[7], 1, MPI_CHAR, 0,
                 MPI_COMM_SELF);
    }
    return end();
}
