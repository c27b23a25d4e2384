/* Ranks in pairs, one of which sends the other a message: in every step, after a reduction, in several ways.
 *
 * usage: partners STEPS MILLIS WAY BIT [WAY BIT]...
 *   Of two ranks whose numbers differ in the bit of value BIT, the lower one sends. `shuffled` is a
 *   communicator in which rank w of the world is 3 w modulo the number of ranks; BIT is of the numbers there.
 *   sendrecv      MPI_Sendrecv, nobody on the other side
 *   any           MPI_Send and MPI_Recv from any source, status ignored; shuffled
 *   waitall       MPI_Isend and MPI_Irecv from any source, MPI_Waitall without statuses; shuffled
 *   waitsome      the same with MPI_Waitsome
 *   testany       the same with MPI_Testany
 *   persistent    MPI_Send_init and MPI_Recv_init once, MPI_Startall; shuffled
 *   persist-any   as persistent, from any source
 *   mprobe        MPI_Send, MPI_Mprobe of any source, MPI_Mrecv without a status
 *   collective    MPI_Allgather among the two: no message of theirs
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORLD MPI_COMM_WORLD
#define INT1(buffer) (buffer), 1, MPI_INT
#define MOST 8

static MPI_Comm shuffled;
static MPI_Request persistent[MOST][2];
static int in, none, out;

static int is_persistent(const char *way) { return strncmp(way, "persist", 7) == 0; }

/* The first request is the message's, the second nobody's. */
static void begin(const char *way, int bit, int tag, MPI_Request *requests) {
    int me;
    MPI_Comm_rank(shuffled, &me);
    if (me & bit)
        MPI_Recv_init(INT1(&in), strcmp(way, "persist-any") == 0 ? MPI_ANY_SOURCE : me ^ bit, tag, shuffled,
                      &requests[0]);
    else
        MPI_Send_init(INT1(&out), me ^ bit, tag, shuffled, &requests[0]);
    MPI_Recv_init(INT1(&none), MPI_PROC_NULL, tag, shuffled, &requests[1]);
}

static void complete(const char *way, MPI_Request *requests) {
    int count, done = 0, flag, indices[2];
    if (strcmp(way, "waitall") == 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    while (strcmp(way, "waitsome") == 0 && done < 2) {
        MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
        done += count;
    }
    while (strcmp(way, "testany") == 0 && done < 2) {
        MPI_Testany(2, requests, indices, &flag, MPI_STATUS_IGNORE);
        done += flag != 0;
    }
}

static void exchange(const char *way, int bit, int tag, MPI_Request *started) {
    MPI_Request requests[2];
    MPI_Message message;
    int world, me;
    MPI_Comm_rank(WORLD, &world);
    MPI_Comm_rank(shuffled, &me);
    if (strcmp(way, "sendrecv") == 0) {
        int to = world & bit ? MPI_PROC_NULL : world ^ bit, from = world & bit ? world ^ bit : MPI_PROC_NULL;
        MPI_Sendrecv(INT1(&out), to, tag, INT1(&in), from, tag, WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(way, "any") == 0) {
        if (me & bit) MPI_Recv(INT1(&in), MPI_ANY_SOURCE, tag, shuffled, MPI_STATUS_IGNORE);
        else MPI_Send(INT1(&out), me ^ bit, tag, shuffled);
    } else if (strcmp(way, "mprobe") == 0) {
        if (world & bit) {
            MPI_Mprobe(MPI_ANY_SOURCE, tag, WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(INT1(&in), &message, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(INT1(&out), world ^ bit, tag, WORLD);
        }
    } else if (strcmp(way, "collective") == 0) {
        MPI_Comm pair;
        int both[2];
        MPI_Comm_split(WORLD, world & ~bit, world, &pair);
        MPI_Allgather(INT1(&out), INT1(both), pair);
        MPI_Comm_free(&pair);
    } else if (is_persistent(way)) {
        MPI_Startall(2, started);
        MPI_Waitall(2, started, MPI_STATUSES_IGNORE);
    } else {
        MPI_Irecv(INT1(&none), MPI_PROC_NULL, tag, shuffled, &requests[0]);
        if (me & bit) MPI_Irecv(INT1(&in), MPI_ANY_SOURCE, tag, shuffled, &requests[1]);
        else MPI_Isend(INT1(&out), me ^ bit, tag, shuffled, &requests[1]);
        complete(way, requests);
    }
}

int main(int argc, char **argv) {
    int rank, ranks, sum, steps = atoi(argv[1]), ways = (argc - 3) / 2;
    struct timespec pause = {0, atol(argv[2]) * 1000000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    MPI_Comm_split(WORLD, 0, 3 * rank % ranks, &shuffled);
    for (int way = 0; way < ways; way++) {
        const char *name = argv[3 + 2 * way];
        if (is_persistent(name)) begin(name, atoi(argv[4 + 2 * way]), way, persistent[way]);
    }
    for (int step = 0; step < steps; step++) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, WORLD);
        for (int way = 0; way < ways; way++)
            exchange(argv[3 + 2 * way], atoi(argv[4 + 2 * way]), way, persistent[way]);
        nanosleep(&pause, NULL);
    }
    for (int way = 0; way < ways; way++)
        for (int side = 0; side < 2; side++)
            if (is_persistent(argv[3 + 2 * way])) MPI_Request_free(&persistent[way][side]);
    MPI_Comm_free(&shuffled);
    MPI_Finalize();
    return 0;
}
