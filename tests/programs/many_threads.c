/* Four threads inside MPI at once, each of which logs its own calls.
 *
 * usage: many_threads LOG own | handed
 *   own     each thread has a communicator: rings of Irecv, Isend and Waitall
 *   handed  two threads make requests, two others complete them: what either has made, in three ways
 * LOG.<rank>.<thread> has a JSON line for each call: some arguments, some outputs, and the numbers that the
 * program gives its requests. A thread's first call sends to nobody with the tag 1000 + its number: its sign.
 * Without MPI_THREAD_MULTIPLE it prints a line that says so.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 300, ROUNDS = 120, MOST = 6 };

static int rank, ranks;
static MPI_Comm comms[THREADS];
static const char *log_name;
static atomic_int last_request;
static pthread_barrier_t started;

static void fail(const char *what) {
    fprintf(stderr, "many_threads: %s\n", what);
    exit(9);
}

static FILE *first_call(int number) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d.%d", log_name, rank, number);
    FILE *log = fopen(path, "w");
    if (!log) fail("cannot write the log");
    MPI_Send(&number, 1, MPI_INT, MPI_PROC_NULL, 1000 + number, MPI_COMM_SELF);
    fprintf(log, "{\"fn\":\"MPI_Send\",\"args\":{\"dest\":\"MPI_PROC_NULL\",\"tag\":%d,\"comm\":\"self\"}}\n",
            1000 + number);
    pthread_barrier_wait(&started); /* or one that has ended could leave its number to a later one */
    return log;
}

static int irecv(FILE *log, int *buffer, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    int number = ++last_request;
    MPI_Irecv(buffer, 1, MPI_INT, source, tag, comm, request);
    fprintf(log, "{\"fn\":\"MPI_Irecv\",\"args\":{\"buf\":\"0x%lx\",\"count\":1,\"tag\":%d,\"source\":",
            (unsigned long)buffer, tag);
    fprintf(log, source == MPI_ANY_SOURCE ? "\"MPI_ANY_SOURCE\"" : "%d", source);
    fprintf(log, "},\"made\":%d}\n", number);
    return number;
}

static int isend(FILE *log, int *buffer, int dest, int tag, MPI_Comm comm, MPI_Request *request) {
    int number = ++last_request;
    MPI_Isend(buffer, 1, MPI_INT, dest, tag, comm, request);
    fprintf(log, "{\"fn\":\"MPI_Isend\",\"args\":{\"buf\":\"0x%lx\",\"count\":1,\"tag\":%d,\"dest\":%d},"
            "\"made\":%d}\n", (unsigned long)buffer, tag, dest, number);
    return number;
}

static void put_numbers(FILE *log, const int *numbers, int count) {
    fputs(",\"given\":[", log);
    for (int i = 0; i < count; i++) fprintf(log, "%s%d", i ? "," : "", numbers[i]);
    fputs("]}\n", log);
}

static void put_status(FILE *log, const MPI_Status *status) {
    fprintf(log, "{\"source\":%d,\"tag\":%d}", status->MPI_SOURCE, status->MPI_TAG);
}

/* Requests are receives and sends in turns: a send's status says nothing. */
static void waitall(FILE *log, int count, MPI_Request *requests, const int *numbers) {
    MPI_Status statuses[2 * MOST];
    MPI_Waitall(count, requests, statuses);
    fprintf(log, "{\"fn\":\"MPI_Waitall\",\"args\":{\"count\":%d},\"out\":{\"array_of_statuses\":[", count);
    for (int i = 0; i < count; i++) {
        if (i) fputc(',', log);
        if (i % 2) fputs("null", log);
        else put_status(log, &statuses[i]);
    }
    fputs("]}", log);
    put_numbers(log, numbers, count);
}

static void waitany(FILE *log, int count, MPI_Request *requests, int *numbers) {
    MPI_Status status;
    int index;
    MPI_Waitany(count, requests, &index, &status);
    fprintf(log, "{\"fn\":\"MPI_Waitany\",\"args\":{\"count\":%d},\"out\":{\"index\":%d", count, index);
    if (index % 2 == 0) fputs(",\"status\":", log), put_status(log, &status);
    fputs("}", log);
    put_numbers(log, numbers, count);
    numbers[index] = 0;
}

static void test(FILE *log, MPI_Request *request, int number, int receives) {
    MPI_Status status;
    int flag = 0;
    while (!flag) {
        MPI_Test(request, &flag, &status);
        fprintf(log, "{\"fn\":\"MPI_Test\",\"args\":{},\"out\":{\"flag\":%s", flag ? "true" : "false");
        if (flag && receives) fputs(",\"status\":", log), put_status(log, &status);
        fputs("}", log);
        put_numbers(log, &number, 1);
        if (!flag) usleep(100);
    }
}

/* ---- own ---- */

static void *own(void *argument) {
    int number = (int)(long)argument, in[1], out;
    FILE *log = first_call(number);
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Request requests[2];
        int numbers[2], tag = turn * 7919 % 31;
        out = rank * TURNS + turn;
        int source = turn % 2 ? MPI_ANY_SOURCE : (rank + ranks - 1) % ranks;
        numbers[0] = irecv(log, in, source, tag, comms[number], &requests[0]);
        numbers[1] = isend(log, &out, (rank + 1) % ranks, tag, comms[number], &requests[1]);
        waitall(log, 2, requests, numbers);
        if (in[0] != (rank + ranks - 1) % ranks * TURNS + turn) fail("a wrong message");
    }
    fclose(log);
    return NULL;
}

/* ---- handed ---- */

struct batch { int count, numbers[2 * MOST], in[MOST], out[MOST]; MPI_Request requests[2 * MOST]; };
/* Room for all: a maker that waits for a completer that waits for a maker elsewhere would wait for ever. */
static struct batch *queue[2 * ROUNDS];
static int queued, makers = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *maker(void *argument) {
    int number = (int)(long)argument;
    FILE *log = first_call(number);
    for (int round = 0; round < ROUNDS; round++) {
        struct batch *batch = calloc(1, sizeof *batch);
        int pairs = 1 + round * 5 % MOST;
        for (int i = 0; i < pairs; i++) {
            batch->out[i] = round;
            batch->numbers[2 * i] = irecv(log, &batch->in[i], MPI_ANY_SOURCE, round % 50 * MOST + i,
                                          comms[number], &batch->requests[2 * i]);
            batch->numbers[2 * i + 1] = isend(log, &batch->out[i], (rank + 1) % ranks, round % 50 * MOST + i,
                                              comms[number], &batch->requests[2 * i + 1]);
        }
        batch->count = 2 * pairs;
        pthread_mutex_lock(&lock);
        queue[queued++] = batch;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    makers--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    fclose(log);
    return NULL;
}

static struct batch *next_batch(void) {
    struct batch *batch = NULL;
    pthread_mutex_lock(&lock);
    while (!queued && makers) pthread_cond_wait(&changed, &lock);
    if (queued) {
        batch = queue[0];
        memmove(queue, queue + 1, --queued * sizeof *queue);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return batch;
}

static void *completer(void *argument) {
    FILE *log = first_call((int)(long)argument);
    int turn = 0;
    for (struct batch *batch; (batch = next_batch()); turn++) {
        switch (turn % 3) {
        case 0: waitall(log, batch->count, batch->requests, batch->numbers); break;
        case 1:
            for (int i = 0; i < batch->count; i++)
                waitany(log, batch->count, batch->requests, batch->numbers);
            break;
        default:
            for (int i = batch->count - 1; i >= 0; i--)
                test(log, &batch->requests[i], batch->numbers[i], i % 2 == 0);
        }
        free(batch);
    }
    fclose(log);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    if (argc < 3) return 9;
    log_name = argv[1];
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    if (provided < MPI_THREAD_MULTIPLE) {
        puts("no MPI_THREAD_MULTIPLE");
    } else {
        pthread_barrier_init(&started, NULL, THREADS);
        for (long i = 0; i < THREADS; i++) {
            void *(*body)(void *) = !strcmp(argv[2], "own") ? own : i < 2 ? maker : completer;
            if (pthread_create(&threads[i], NULL, body, (void *)i)) fail("pthread_create");
        }
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return 0;
}
