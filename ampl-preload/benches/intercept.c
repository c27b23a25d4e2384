/* Nanoseconds of thread CPU time per call (per request for arrays), minimum and median over blocks; a line per
 * loop and rank. With a loop's name and a number: that loop alone, about so many calls, for a counter of
 * instructions outside; prints the calls made. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define BLOCKS 201
#define CALLS 1000
#define REQUESTS 64
#define TAGS 1000
#define SYMBOLS 20000

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int rank, value;
static MPI_Request several[REQUESTS];
static volatile unsigned long long ticks;

static void send(int tag) { MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD); }

/* Each makes about `calls` calls and returns how many units its cost is told per. */

static long clock_reads(long calls) {
    for (long i = 0; i < calls; i++)
        ticks += __rdtsc() - __rdtsc();
    return calls;
}

static long local(long calls) {
    int self;
    for (long i = 0; i < calls; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &self);
    return calls;
}

static long one_signature(long calls) {
    for (long i = 0; i < calls; i++)
        send(0);
    return calls;
}

/* Failed polls, nobody sends to rank 0 here: they fold into the one before. (Of MPI_PROC_NULL a probe finds a message.) */
static long polls(long calls) {
    int flag;
    for (long i = 0; i < calls; i++)
        MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    return calls;
}

/* The same of one request. */
static long tests(long calls) {
    int flag, none;
    MPI_Request one;
    MPI_Irecv(&none, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &one);
    for (long i = 0; i < calls; i++)
        MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    return calls;
}

static long request(long calls) {
    MPI_Request one;
    for (long i = 0; i < calls; i += 2) {
        MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &one);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
    }
    return calls;
}

/* Nine calls in three levels. */
static long nested(long calls) {
    long made = 0;
    while (made < calls) {
        send(1), send(2), send(3);
        for (int j = 0; j < 4; j++) {
            send(4), send(5), send(6);
            for (int k = 0; k < 5; k++)
                send(7), send(8), send(9);
        }
        made += 3 + 4 * (3 + 5 * 3);
    }
    return made;
}

static long waitall(long calls, int requests) {
    for (long i = 0; i < calls; i++)
        MPI_Waitall(requests, several, MPI_STATUSES_IGNORE);
    return calls * requests;
}

static long array_1(long calls) { return waitall(calls, 1); }
static long array_8(long calls) { return waitall(calls, 8); }
static long array_64(long calls) { return waitall(calls, 64); }

static long tags(long calls) {
    for (long i = 0; i < calls; i++)
        send(100 + (int)(i % TAGS));
    return calls;
}

static unsigned long long seed = 88172645463325252ULL;

static long symbols(long calls) {
    for (long i = 0; i < calls; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        send(2000 + (int)((seed >> 11) % SYMBOLS));
    }
    return calls;
}

/* What leaves the largest grammar behind comes last. */
static const struct {
    const char *name;
    long (*run)(long calls);
} loops[] = {
    {"two-clock-reads", clock_reads},
    {"MPI_Comm_rank", local},
    {"one-signature", one_signature},
    {"MPI_Iprobe", polls},
    {"MPI_Test", tests},
    {"Isend,Wait", request},
    {"nested", nested},
    {"Waitall(1)", array_1},
    {"Waitall(8)", array_8},
    {"Waitall(64)", array_64},
    {"1000-tags", tags},
    {"random-tags", symbols},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < REQUESTS; i++)
        MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &several[i]);
    for (size_t l = 0; l < sizeof loops / sizeof *loops; l++) {
        if (argc > 2) {
            if (strcmp(argv[1], loops[l].name) == 0)
                printf("%s %d %ld\n", loops[l].name, rank, loops[l].run(atol(argv[2])));
            continue;
        }
        static double blocks[BLOCKS];
        for (int b = 0; b < BLOCKS; b++) {
            double start = now_ns();
            long units = loops[l].run(CALLS);
            blocks[b] = (now_ns() - start) / units;
        }
        qsort(blocks, BLOCKS, sizeof *blocks, ascending);
        printf("%s %d %.2f %.2f\n", loops[l].name, rank, blocks[0], blocks[BLOCKS / 2]);
        fflush(stdout);
    }
    for (int i = 0; i < REQUESTS; i++)
        MPI_Request_free(&several[i]);
    MPI_Finalize();
    return 0;
}
