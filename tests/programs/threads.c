/* Threads that call MPI, under MPI_THREAD_MULTIPLE.
 *
 * usage: threads ring | short | crossed | recycled | idle-main | wait-main | cancel | cancel-inside | cancel-first |
 *                cancel-late
 *   ring          4 threads, each with a communicator of its own: rings and reductions
 *   short         1000 threads, one after the other in groups of 4, a few calls each
 *   crossed       requests made on one thread and completed on another, statuses ignored or not
 *   recycled      4 threads make and free communicators, each under handles that the others have just freed
 *   idle-main     the main thread never calls MPI; another one initialises, works and finalises
 *   wait-main     the main thread waits for another one, which works for more than a second
 *   cancel        a thread is cancelled while it polls in MPI; the others go on
 *   cancel-inside a thread is cancelled where it waits in MPI_Recv; then the process ends
 *   cancel-first  a thread calls MPI for the first time with a cancellation pending
 *   cancel-late   a thread makes so many calls with a cancellation pending that what is recorded of them needs more room
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 500, SHORT = 1000 };

static int rank, ranks;
static MPI_Comm comms[THREADS];

static void fail(const char *what) {
    fprintf(stderr, "threads: %s\n", what);
    exit(9);
}

static pthread_t started(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) fail("pthread_create");
    return thread;
}

static void begin(void) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) fail("no MPI_THREAD_MULTIPLE");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* ---- ring ---- */

static void *ring(void *argument) {
    long number = (long)argument, sum = 0;
    int in = 0, out, reduced;
    MPI_Comm comm = comms[number];
    for (int turn = 0; turn < TURNS; turn++) {
        out = rank * 1000 + turn;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv(&in, 1, MPI_INT, (rank + ranks - 1) % ranks, turn, comm, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % ranks, turn, comm, &requests[1]);
        MPI_Waitall(2, requests, turn % 2 ? MPI_STATUSES_IGNORE : statuses);
        if (turn % 2 == 0 && statuses[0].MPI_TAG != turn) fail("a status of another thread");
        sum += in;
        if (turn % 10 == 0) {
            MPI_Allreduce(&turn, &reduced, 1, MPI_INT, MPI_SUM, comm);
            sum += reduced;
        }
    }
    return (void *)sum;
}

static void rings(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (long i = 0; i < THREADS; i++) threads[i] = started(ring, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        printf("rank %d thread %d: %ld\n", rank, i, (long)sum);
        MPI_Comm_free(&comms[i]);
    }
}

/* ---- short ---- */

static atomic_long received;

static void *brief(void *argument) {
    int number = (int)(long)argument, in = -1;
    MPI_Sendrecv(&number, 1, MPI_INT, rank, number, &in, 1, MPI_INT, rank, number, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 5; i++) MPI_Send(&in, 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD);
    received += in;
    return NULL;
}

static void short_lived(void) {
    pthread_t threads[THREADS];
    rank = 0; /* in MPI_COMM_SELF */
    for (long first = 0; first < SHORT; first += THREADS) {
        for (int i = 0; i < THREADS; i++) threads[i] = started(brief, (void *)(first + i));
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: %ld\n", rank, (long)received);
}

/* ---- crossed ---- */

enum { ROUNDS = 200, EACH = 8 };
static MPI_Request open_requests[2 * EACH];
static int sent[EACH], got[EACH];
static pthread_barrier_t meeting;

static void *maker(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EACH; i++) {
            sent[i] = round + i;
            MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, i, comms[0], &open_requests[2 * i]);
            MPI_Isend(&sent[i], 1, MPI_INT, (rank + 1) % ranks, i, comms[0], &open_requests[2 * i + 1]);
        }
        pthread_barrier_wait(&meeting);
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void *completer(void *argument) {
    long *sum = argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&meeting);
        int left = 2 * EACH, index, flag = 0, done, indices[2 * EACH];
        MPI_Status status;
        MPI_Wait(&open_requests[0], MPI_STATUS_IGNORE), left--;
        MPI_Wait(&open_requests[2], &status), left--;
        if (status.MPI_TAG != 1 || status.MPI_SOURCE != (rank + ranks - 1) % ranks) fail("a wrong status");
        while (!flag) MPI_Test(&open_requests[1], &flag, MPI_STATUS_IGNORE);
        left--;
        MPI_Waitany(2 * EACH, open_requests, &index, MPI_STATUS_IGNORE), left--;
        MPI_Waitsome(2 * EACH, open_requests, &done, indices, MPI_STATUSES_IGNORE), left -= done;
        MPI_Waitall(2 * EACH, open_requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < EACH; i++) *sum += got[i];
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void crossed(void) {
    long sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_t makes = started(maker, NULL), completes = started(completer, &sum);
    pthread_join(makes, NULL);
    pthread_join(completes, NULL);
    MPI_Comm_free(&comms[0]);
    printf("rank %d: %ld\n", rank, sum);
}

/* ---- idle-main ---- */

static void *everything(void *argument) {
    (void)argument;
    begin();
    int sum = 0, all;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
        if (turn % 100 == 0) usleep(1000);
    }
    printf("rank %d: %d\n", rank, sum);
    fflush(stdout);
    MPI_Finalize();
    return NULL;
}

/* ---- wait-main ---- */

static void *worker(void *argument) {
    int sum = 0, all;
    for (int turn = 0; turn < 120; turn++) {
        MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
        usleep(10000);
    }
    printf("rank %d: %d\n", rank, sum);
    return argument;
}

/* ---- cancel ---- */

static atomic_int polls;

static void *poller(void *argument) {
    int flag;
    MPI_Request request = *(MPI_Request *)argument;
    for (;;) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        polls++;
        pthread_testcancel();
    }
    return NULL;
}

static void cancel(void) {
    int in = -1, out = rank;
    for (int round = 0; round < 5; round++) {
        MPI_Request request;
        void *result;
        polls = 0;
        MPI_Irecv(&in, 1, MPI_INT, 0, round, MPI_COMM_SELF, &request);
        pthread_t thread = started(poller, &request);
        while (polls < 20) usleep(100);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        MPI_Send(&out, 1, MPI_INT, 0, round, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("rank %d round %d: %s, got %d\n", rank, round,
               result == PTHREAD_CANCELED ? "cancelled" : "not", in);
    }
}

static atomic_int entering;

static void *receiver(void *argument) {
    int in, before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    entering = 1;
    MPI_Recv(&in, 1, MPI_INT, 0, 99, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return argument;
}

/* Milliseconds that `thread` has had a processor. */
static double busy(pthread_t thread) {
    clockid_t clock;
    struct timespec time;
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &time)) fail("no clock of a thread");
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* Waits until all ranks have come here, by files: MPI may hold locks of a dead thread's. Returns at the same moment on
 * all of them: the launcher ends the others when one has ended. */
static void meet(void) {
    struct timespec last = {0, 0};
    char name[32];
    snprintf(name, sizeof name, "threads.%d", rank);
    FILE *mine = fopen(name, "w");
    if (!mine || fclose(mine)) fail("cannot write");
    for (int other = 0, turns = 0; other < ranks; other += access(name, F_OK) == 0) {
        if (turns++ > 6000) fail("a rank is missing");
        snprintf(name, sizeof name, "threads.%d", other);
        usleep(10000);
    }
    for (int other = 0; other < ranks; other++) {
        struct stat file;
        snprintf(name, sizeof name, "threads.%d", other);
        if (stat(name, &file)) fail("a rank is gone");
        if (file.st_mtim.tv_sec > last.tv_sec ||
            (file.st_mtim.tv_sec == last.tv_sec && file.st_mtim.tv_nsec > last.tv_nsec))
            last = file.st_mtim;
    }
    last.tv_sec += 1;
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &last, NULL);
}

static void cancel_inside(void) {
    void *result;
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_t thread = started(receiver, NULL);
    while (!entering) usleep(1000);
    /* Who waits in MPI_Recv polls: it is there once it has worked for longer than the way to it takes. */
    for (double begin = busy(thread); busy(thread) < begin + 20;) usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("rank %d: %s\n", rank, result == PTHREAD_CANCELED ? "cancelled" : "not");
    fflush(stdout);
    meet();
    _exit(0);
}

static atomic_int pending, reached;

static void cleanup(void *argument) { *(int *)argument += 1; }

static void *first_call(void *argument) {
    int out = 3, in = 0;
    pthread_cleanup_push(cleanup, argument);
    while (!pending) continue; /* no cancellation point */
    for (int i = 0; i < 100; i++) {
        MPI_Comm_rank(MPI_COMM_WORLD, &in);
        MPI_Sendrecv(&out, 1, MPI_INT, 0, i, &in, 1, MPI_INT, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        reached++;
    }
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_first(void) {
    for (int round = 0; round < 3; round++) {
        int cleaned = 0;
        void *result;
        pending = reached = 0;
        pthread_t thread = started(first_call, &cleaned);
        pthread_cancel(thread);
        pending = 1;
        pthread_join(thread, &result);
        printf("rank %d round %d: %s after %d turns, cleaned %d\n", rank, round,
               result == PTHREAD_CANCELED ? "cancelled" : "not", reached, cleaned);
    }
}

static void *many_calls(void *argument) {
    int size;
    pthread_cleanup_push(cleanup, argument);
    MPI_Comm_size(MPI_COMM_SELF, &size);
    while (!pending) continue; /* no cancellation point */
    for (int i = 0; i < 20000; i++) {
        MPI_Barrier(MPI_COMM_SELF);
        reached++;
    }
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_late(void) {
    int cleaned = 0;
    void *result;
    pthread_t thread = started(many_calls, &cleaned);
    pthread_cancel(thread);
    pending = 1;
    pthread_join(thread, &result);
    printf("rank %d: %s after %d turns, cleaned %d\n", rank, result == PTHREAD_CANCELED ? "cancelled" : "not", reached,
           cleaned);
}

/* ---- recycled ---- */

static void *recycles(void *argument) {
    MPI_Comm *own = argument, comm;
    for (int turn = 0; turn < 20000; turn++) {
        MPI_Comm_dup(*own, &comm);
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    }
    return NULL;
}

static void recycled(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
    for (int i = 0; i < THREADS; i++) threads[i] = started(recycles, &comms[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
    printf("rank %d: done\n", rank);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "idle-main")) {
        pthread_join(started(everything, NULL), NULL);
        return 0;
    }
    begin();
    if (!strcmp(mode, "ring")) rings();
    else if (!strcmp(mode, "short")) short_lived();
    else if (!strcmp(mode, "crossed")) crossed();
    else if (!strcmp(mode, "recycled")) recycled();
    else if (!strcmp(mode, "wait-main")) pthread_join(started(worker, NULL), NULL);
    else if (!strcmp(mode, "cancel")) cancel();
    else if (!strcmp(mode, "cancel-inside")) cancel_inside();
    else if (!strcmp(mode, "cancel-first")) cancel_first();
    else if (!strcmp(mode, "cancel-late")) cancel_late();
    else fail("no such mode");
    MPI_Finalize();
    return 0;
}
