/* Receives from anybody that complete in any order, drained as it is told; every call is in the log.
 *
 * usage: drains LOG testsome | waitsome | testany | waitany
 * Every rank sends EACH messages to every other one in a shuffled order with pauses, otherwise in each run.
 */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "call.h"

#define SENT "buf:b count:i datatype:t dest:r tag:g comm:c"
#define RECEIVED "buf:b count:i datatype:t source:r tag:g comm:c"
#define SOME "incount:i ~array_of_requests:q(incount) >outcount:u >array_of_indices:x(outcount) " \
             ">array_of_statuses:s(outcount)"
#define ANY "count:i ~array_of_requests:q(count) >index:x "
#define WORLD MPI_COMM_WORLD

enum { EACH = 6, MOST = 32, ROUNDS = 25 };

static int in[MOST], out[MOST], expected, drained;
static MPI_Request requests[2 * MOST];

/* Drains something, and waits for that unless it only looks. */
static void drain(const char *how) {
    int count = 0, index, flag = 0, indices[MOST];
    MPI_Status statuses[MOST];
    if (!strcmp(how, "testsome")) CALL(MPI_Testsome, SOME, expected, requests, &count, indices, statuses);
    else if (!strcmp(how, "waitsome"))
        CALL(MPI_Waitsome, SOME, expected, requests, &count, indices, statuses);
    else if (!strcmp(how, "testany"))
        CALL(MPI_Testany, ANY ">flag:l >status:s", expected, requests, &index, &flag, &statuses[0]);
    else CALL(MPI_Waitany, ANY ">status:s", expected, requests, &index, &statuses[0]), flag = 1;
    drained += strstr(how, "some") ? count : flag;
}

static void shuffle(int *items, int count) {
    for (int i = count - 1; i > 0; i--) {
        int other = rand() % (i + 1), item = items[i];
        items[i] = items[other], items[other] = item;
    }
}

int main(int argc, char **argv) {
    int order[MOST], looks = argc > 2 && !strncmp(argv[2], "test", 4);
    struct timespec now;
    if (argc < 3) return 9;
    begin(argc, argv);
    clock_gettime(CLOCK_REALTIME, &now);
    srand(now.tv_nsec + rank);
    expected = EACH * (ranks - 1);
    if (expected > MOST) return 9;
    for (int round = 0; round < ROUNDS; round++) {
        /* From anybody in one round; in the next each from somebody, in which order is open all the same. */
        for (int i = 0; i < expected; i++) {
            int source = (rank + 1 + i % (ranks - 1)) % ranks;
            CALL(MPI_Irecv, RECEIVED " >request:v", &in[i], 1, MPI_INT, round % 2 ? source : MPI_ANY_SOURCE,
                 i % 3 ? 7 : MPI_ANY_TAG, WORLD, &requests[i]);
        }
        CALL(MPI_Barrier, "comm:c", WORLD);
        drained = 0;
        for (int i = 0; i < expected; i++) order[i] = i;
        shuffle(order, expected);
        for (int i = 0; i < expected; i++) {
            int dest = (rank + 1 + order[i] % (ranks - 1)) % ranks;
            out[i] = rank;
            CALL(MPI_Send, SENT, &out[i], 1, MPI_INT, dest, 7, WORLD);
            if (rand() % 4 == 0) usleep(rand() % 300);
            if (looks && drained < expected) drain(argv[2]);
        }
        while (drained < expected) drain(argv[2]);
        CALL(MPI_Barrier, "comm:c", WORLD);
    }
    return end();
}
