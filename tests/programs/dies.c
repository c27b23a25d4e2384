/* Exchanges of many kinds, every one of them in a log before and after, until one rank dies as it is told.
 *
 * usage: dies LOG HOW TURN
 *   HOW    abort | exit | abort-self | segv | term | kill: rank 3 does it in turn TURN
 *          surprise: SIGKILL comes TURN microseconds after the first turn, wherever rank 3 is then
 *          finalize: nobody dies, after TURN turns
 * The log is not buffered: what is behind a call in it has returned, and a line without an end was under way.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

#define SENT "buf:b count:i datatype:t dest:r tag:g comm:c"
#define RECEIVED "buf:b count:i datatype:t source:r tag:g comm:c"
#define WORLD MPI_COMM_WORLD

enum { VICTIM = 3 };

static int left, right, in[8], out[8];

static void receive_and_send(int tag, int count, MPI_Request *requests) {
    CALL(MPI_Irecv, RECEIVED " >request:v", in, 8, MPI_INT, tag % 2 ? left : MPI_ANY_SOURCE, tag, WORLD,
         &requests[0]);
    CALL(MPI_Isend, SENT " >request:q", out, count, MPI_INT, right, tag, WORLD, &requests[1]);
}

static void objects(int number) {
    MPI_Comm copy;
    MPI_Datatype type;
    CALL(MPI_Comm_dup, "comm:c >newcomm:c", WORLD, &copy);
    CALL(MPI_Type_contiguous, "count:i oldtype:t >newtype:t", 2 + number % 3, MPI_INT, &type);
    CALL(MPI_Type_commit, "~datatype:t", &type);
    CALL(MPI_Bcast, "buffer:b count:i datatype:t root:r comm:c", in, 1, type, number % ranks, copy);
    CALL(MPI_Type_free, "~datatype:t", &type);
    CALL(MPI_Comm_free, "~comm:c", &copy);
}

static void turn(int number) {
    /* Tags that come again, but in no order. */
    int tag = (number * 2654435761u >> 20) % 101, flag = 0, index;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    receive_and_send(tag, 1 + tag % 4, requests);
    CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 2, requests,
         statuses);
    for (int i = 0; i < number % 4; i++)
        CALL(MPI_Iprobe, "source:r tag:g comm:c >flag:l >status:s", left, 999, WORLD, &flag, &statuses[0]);
    receive_and_send(200 + number % 7, 2, requests);
    for (int i = 0; i < 3 && !flag; i++)
        CALL(MPI_Test, "~request:q >flag:l >status:s", &requests[0], &flag, &statuses[0]);
    for (int i = 0; i < 2 - flag; i++)
        CALL(MPI_Waitany, "count:i ~array_of_requests:q(count) >index:x >status:s", 2, requests, &index,
             &statuses[0]);
    if (number % 3 == 0)
        CALL(MPI_Allreduce, "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c", out, in, 1 + number % 2,
             MPI_INT, number % 2 ? MPI_SUM : MPI_MAX, WORLD);
    if (number % 16 == 0) objects(number);
}

static void die(const char *how) {
    if (!strcmp(how, "abort")) CALL(MPI_Abort, "comm:c errorcode:i", WORLD, 5);
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "abort-self")) abort();
    if (!strcmp(how, "segv")) *(volatile int *)8 = 0;
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "kill")) raise(SIGKILL);
}

static void kill_after(long microseconds) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {microseconds / 1000000, microseconds % 1000000 * 1000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL)) exit(9);
}

int main(int argc, char **argv) {
    char path[4096];
    if (argc < 4) return 9;
    int last = atoi(argv[3]), surprise = !strcmp(argv[2], "surprise");
    APPLY(MADE_ONLY, BEGIN);
    PMPI_Comm_rank(WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    log_file = fopen(path, "w");
    if (!log_file || setvbuf(log_file, NULL, _IONBF, 0)) return 9;
    APPLY(LOGGED_ONLY, BEGIN);
    CALL(MPI_Comm_size, "comm:c >size:i", WORLD, &ranks);
    left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    if (surprise && rank == VICTIM) kill_after(last);
    for (int number = 0; surprise || number < last; number++) turn(number);
    if (rank == VICTIM) die(argv[2]);
    if (strcmp(argv[2], "finalize")) CALL(MPI_Barrier, "comm:c", WORLD);
    return end();
}
