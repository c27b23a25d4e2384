/* A job without manners, the same for the same seed: messages, collectives and probes in random order,
 * ranks that sleep, compute, chat with themselves, block each other or leave long before the others.
 *
 * usage: loop_stress SEED PHASES PACE LOG
 *   PACE  how long pauses are, microseconds at most
 *   LOG   rank R writes LOG.R: {"phases":N,"controls":M,"told":{"rank":R,"counts":{"FUNCTION":CALLS,…}}}
 *
 * It names its phases, the region PHASE with TALK inside of some, and marks most of them by MPI_Pcontrol(2); N and M
 * are how many.
 *
 * With -DADDED it calls MPI_Barrier and MPI_Wait by their profiling names once, as a library must not.
 *
 * Rank 0 prints one line: how many messages and results all ranks checked, their sum, and how many were
 * not what they should be. What each should be follows from seed, phase and ranks alone.
 */
#define _GNU_SOURCE
#include <ampl.h>
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "tally.h"

/* Makes a call and counts it. */
#define CALL(name, ...) (count_call("MPI_" #name), MPI_##name(__VA_ARGS__))

enum { MOST_INTS = 20000, MOST_AT_ONCE = 6 };

static uint64_t seed;
static int phase, pace, phases_made, controls;
static MPI_Comm comm;         /* of those that have not left */
static int me, size;          /* in it */
static int world_rank, ranks; /* in the world */
static long checked, wrong;
static unsigned long sum;

/* ---- chance -------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t key(uint64_t a, uint64_t b, uint64_t c) {
    return mixed(mixed(mixed(mixed(seed) ^ a) ^ b) ^ c);
}

/* The same number on every rank, below `bound`; `what` tells questions of a phase apart. */
static int common(int what, int bound) { return (int)(key(phase, 1000 + what, 0) % bound); }

/* Each rank's own. */
static int mine(int what, int bound) { return (int)(key(phase, 2000 + what, world_rank + 1) % bound); }

/* ---- time ---------------------------------------------------------------------------------- */

static void rest(int microseconds) {
    struct timespec span = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    nanosleep(&span, NULL);
}

static void compute(int microseconds) {
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += microseconds * 1000L;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do {
        for (volatile int i = 0; i < 2000; i++) {}
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

/* ---- what is sent, and whether it arrived -------------------------------------------------- */

static int length_of(int source, int dest, int tag) {
    uint64_t chance = key(phase, source * 4096u + dest, 100 + tag);
    return chance % 16 ? 1 + (int)(chance / 16 % 200) : 2000 + (int)(chance / 16 % (MOST_INTS - 2000));
}

static int element(int source, int dest, int tag, int i) {
    return (int)key(phase, source * 4096u + dest, ((uint64_t)tag << 32) + i);
}

static int fill(int *data, int dest, int tag) {
    int length = length_of(me, dest, tag);
    for (int i = 0; i < length; i++) data[i] = element(me, dest, tag, i);
    return length;
}

static void check(long found, long expected) {
    checked++;
    sum += (unsigned long)expected;
    if (found == expected) return;
    if (wrong++ == 0)
        fprintf(stderr, "rank %d, phase %d: %ld instead of %ld\n", world_rank, phase, found, expected);
}

static void check_message(const int *data, int source, int tag) {
    int length = length_of(source, me, tag), good = 1;
    for (int i = 0; i < length; i++) good &= data[i] == element(source, me, tag, i);
    check(good ? data[0] : ~element(source, me, tag, 0), element(source, me, tag, 0));
}

static int to(int shift) { return (me + shift) % size; }
static int from(int shift) { return (me + size - shift % size) % size; }

/* Receives from anyone must not meet what a quicker rank sends in its next phase. */
static int tag_of(int number) { return 16 * phase + number; }

/* ---- phases -------------------------------------------------------------------------------- */

static int out[MOST_AT_ONCE][MOST_INTS], in[MOST_AT_ONCE][MOST_INTS];

static void ring(void) {
    int shift = common(1, size), length = fill(out[0], to(shift), 0);
    int expected = length_of(from(shift), me, 0);
    MPI_Request request;
    switch (common(2, 3)) {
    case 0:
        CALL(Sendrecv, out[0], length, MPI_INT, to(shift), tag_of(0), in[0], expected, MPI_INT, from(shift),
             tag_of(0), comm, MPI_STATUS_IGNORE);
        break;
    case 1:
        CALL(Isend, out[0], length, MPI_INT, to(shift), tag_of(0), comm, &request);
        CALL(Recv, in[0], MOST_INTS, MPI_INT, mine(1, 2) ? MPI_ANY_SOURCE : from(shift), tag_of(0), comm,
             MPI_STATUS_IGNORE);
        CALL(Wait, &request, MPI_STATUS_IGNORE);
        break;
    default:
        CALL(Irecv, in[0], MOST_INTS, MPI_INT, from(shift), tag_of(0), comm, &request);
        if (mine(2, 2)) CALL(Ssend, out[0], length, MPI_INT, to(shift), tag_of(0), comm);
        else CALL(Send, out[0], length, MPI_INT, to(shift), tag_of(0), comm);
        CALL(Wait, &request, MPI_STATUS_IGNORE);
    }
    check_message(in[0], from(shift), 0);
}

static void complete(MPI_Request *requests, int count, int how) {
    int done = 0, flag = 0, index, indices[2 * MOST_AT_ONCE];
    MPI_Status statuses[2 * MOST_AT_ONCE];
    switch (how) {
    case 0: CALL(Waitall, count, requests, mine(3, 2) ? statuses : MPI_STATUSES_IGNORE); break;
    case 1:
        for (int left = count; left; left--) CALL(Waitany, count, requests, &index, statuses);
        break;
    case 2:
        for (int left = count; left; left -= done) CALL(Waitsome, count, requests, &done, indices, statuses);
        break;
    case 3:
        for (; !flag; sched_yield()) CALL(Testall, count, requests, &flag, statuses);
        break;
    case 4:
        for (int left = count; left; left -= done, sched_yield())
            CALL(Testsome, count, requests, &done, indices, statuses);
        break;
    default:
        for (int i = 0; i < count; i++)
            for (flag = 0; !flag; sched_yield()) CALL(Test, &requests[i], &flag, MPI_STATUS_IGNORE);
    }
}

static void many(void) {
    int count = 1 + common(3, MOST_AT_ONCE), first = common(4, size);
    MPI_Request requests[2 * MOST_AT_ONCE];
    for (int i = 0; i < count; i++)
        CALL(Irecv, in[i], MOST_INTS, MPI_INT, from(first + i), tag_of(i), comm, &requests[i]);
    if (mine(4, 4) == 0) rest(mine(5, pace));
    for (int i = 0; i < count; i++) {
        int length = fill(out[i], to(first + i), i);
        CALL(Isend, out[i], length, MPI_INT, to(first + i), tag_of(i), comm, &requests[count + i]);
    }
    complete(requests, 2 * count, mine(6, 6));
    for (int i = 0; i < count; i++) check_message(in[i], from(first + i), i);
}

static void collective(void) {
    int root = common(5, size), value = me + phase, result = -1, flag = 0;
    int all = size * (size - 1) / 2 + size * phase;
    MPI_Request request;
    switch (common(6, 8)) {
    case 0: CALL(Barrier, comm); return;
    case 1:
        CALL(Allreduce, &value, &result, 1, MPI_INT, MPI_SUM, comm);
        check(result, all);
        return;
    case 2:
        CALL(Bcast, &value, 1, MPI_INT, root, comm);
        check(value, root + phase);
        return;
    case 3:
        CALL(Reduce, &value, &result, 1, MPI_INT, MPI_SUM, root, comm);
        if (me == root) check(result, all);
        return;
    case 4:
        CALL(Gather, &value, 1, MPI_INT, in[0], 1, MPI_INT, root, comm);
        for (int i = 0; me == root && i < size; i++) check(in[0][i], i + phase);
        return;
    case 5:
        for (int i = 0; i < size; i++) out[0][i] = element(me, i, 9, 0);
        CALL(Alltoall, out[0], 1, MPI_INT, in[0], 1, MPI_INT, comm);
        for (int i = 0; i < size; i++) check(in[0][i], element(i, me, 9, 0));
        return;
    case 6:
        CALL(Iallreduce, &value, &result, 1, MPI_INT, MPI_MAX, comm, &request);
        if (mine(7, 2)) compute(mine(8, pace) / 4);
        for (; !flag; sched_yield()) CALL(Test, &request, &flag, MPI_STATUS_IGNORE);
        check(result, size - 1 + phase);
        return;
    default:
        CALL(Ibarrier, comm, &request);
        CALL(Wait, &request, MPI_STATUS_IGNORE);
    }
}

static void probe(void) {
    int shift = common(7, size), length = fill(out[0], to(shift), 6), found = 0, count;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    CALL(Isend, out[0], length, MPI_INT, to(shift), tag_of(6), comm, &request);
    switch (mine(9, 3)) {
    case 0: CALL(Probe, MPI_ANY_SOURCE, tag_of(6), comm, &status); break;
    case 1:
        for (; !found; sched_yield()) CALL(Iprobe, from(shift), tag_of(6), comm, &found, &status);
        break;
    default: CALL(Mprobe, from(shift), MPI_ANY_TAG, comm, &message, &status);
    }
    CALL(Get_count, &status, MPI_INT, &count);
    check(count, length_of(from(shift), me, 6));
    if (mine(9, 3) == 2) CALL(Mrecv, in[0], count, MPI_INT, &message, MPI_STATUS_IGNORE);
    else CALL(Recv, in[0], count, MPI_INT, status.MPI_SOURCE, tag_of(6), comm, MPI_STATUS_IGNORE);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    check_message(in[0], from(shift), 6);
}

/* Calls that concern nobody else; how many is each rank's own affair, barriers too. */
static void chat(int turns) {
    int value = me, back = -1, flag;
    MPI_Request none = MPI_REQUEST_NULL;
    ampl_region_begin("TALK");
    for (int turn = 0; turn < turns; turn++) {
        switch (mine(100 + turn, 5)) {
        case 0: CALL(Barrier, MPI_COMM_SELF); break;
        case 1: CALL(Iprobe, MPI_ANY_SOURCE, 3, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE); break;
        case 2: CALL(Test, &none, &flag, MPI_STATUS_IGNORE); break;
        case 3: CALL(Comm_rank, comm, &back); break;
        default:
            CALL(Sendrecv, &value, 1, MPI_INT, 0, 2, &back, 1, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            check(back, me);
        }
    }
    ampl_region_end("TALK");
}

/* One rank, often the first, waits in MPI_Recv for another that takes its time; the rest go on. */
static void blocked(void) {
    int waiting = common(8, 2) ? 0 : common(9, size), busy = (waiting + 1) % size;
    if (size == 1) return;
    if (me == waiting) {
        CALL(Recv, in[0], MOST_INTS, MPI_INT, MPI_ANY_SOURCE, tag_of(7), comm, MPI_STATUS_IGNORE);
        check_message(in[0], busy, 7);
        return;
    }
    chat(mine(10, 100));
    if (me != busy) return;
    rest(pace + common(10, 2 * pace));
    CALL(Send, out[0], fill(out[0], waiting, 7), MPI_INT, waiting, tag_of(7), comm);
}

static void parts(void) {
    int rank, members, total;
    MPI_Comm part;
    if (common(11, 2)) CALL(Comm_split, comm, mine(11, 3), me, &part);
    else CALL(Comm_dup, comm, &part);
    CALL(Comm_size, part, &members);
    CALL(Comm_rank, part, &rank);
    CALL(Allreduce, &rank, &total, 1, MPI_INT, MPI_SUM, part);
    check(total, members * (members - 1) / 2);
    if (rank % 2) CALL(Barrier, MPI_COMM_SELF);
    CALL(Comm_free, &part);
}

static void one_phase(void) {
    /* One rank of the run is always late, in every third run the first. */
    int slow = (int)(seed % 3 ? mixed(seed) % ranks : 0);
    if (world_rank == slow) (seed & 4 ? compute : rest)(pace / 4);
    switch (common(0, 10)) {
    case 0: case 1: ring(); break;
    case 2: case 3: many(); break;
    case 4: collective(); break;
    case 5: probe(); break;
    case 6: blocked(); break;
    case 7: parts(); break;
    case 8: /* nothing at all for several windows */
        if (mine(12, 2)) rest(mine(13, 3 * pace));
        else compute(mine(13, pace) / 4);
        break;
    default: chat(mine(14, 300));
    }
    int level = common(15, 4) ? 2 : 1;
    controls += level == 2;
    CALL(Pcontrol, level);
}

/* Tells programs/loop_calls.c, if it is there, what to count. */
static void count_calls(int on) {
    void (*count)(int);
    *(void **)&count = dlsym(RTLD_DEFAULT, "count_calls");
    if (count) count(on);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int phases = atoi(argv[2]);
    char path[4096];
    seed = strtoull(argv[1], NULL, 10);
    pace = atoi(argv[3]);
    CALL(Init, &argc, &argv);
    count_calls(1);
#ifdef ADDED
    MPI_Request none = MPI_REQUEST_NULL;
    PMPI_Barrier(MPI_COMM_WORLD);
    PMPI_Wait(&none, MPI_STATUS_IGNORE);
#endif
    CALL(Comm_rank, MPI_COMM_WORLD, &world_rank);
    CALL(Comm_size, MPI_COMM_WORLD, &ranks);
    phase = -1;
    /* In every second run about a quarter of the ranks leave after a third of it, the first may be one. */
    int leaves = seed % 2 && mine(0, 4) == 0;
    MPI_Comm staying;
    CALL(Comm_split, MPI_COMM_WORLD, leaves, world_rank, &staying);
    comm = MPI_COMM_WORLD;
    me = world_rank;
    size = ranks;
    for (phase = 0; phase < phases; phase++) {
        if (phase == phases / 3) {
            /* While all are there: how many messages were as they should be, told to whom it may concern. */
            if (leaves) break;
            comm = staying;
            CALL(Comm_rank, comm, &me);
            CALL(Comm_size, comm, &size);
        }
        ampl_region_begin("PHASE");
        one_phase();
        ampl_region_end("PHASE");
        phases_made++;
    }
    /* The first prints, unless it has left; then what came of the others is not known to it. */
    long part[3] = {checked, (long)sum, wrong}, whole[3] = {0, 0, 0};
    CALL(Reduce, part, whole, 3, MPI_LONG, MPI_SUM, 0, staying);
    CALL(Comm_rank, staying, &me);
    if (me == 0) {
        printf("%d leave: %ld checked, sum %lx, %ld wrong\n", leaves, whole[0], (unsigned long)whole[1], whole[2]);
        fflush(stdout);
    }
    CALL(Comm_free, &staying);
    snprintf(path, sizeof path, "%s.%d", argv[4], world_rank);
    count_calls(0);
    CALL(Finalize);
    FILE *log = fopen(path, "w");
    if (!log) { perror(path); return 9; }
    fprintf(log, "{\"phases\":%d,\"controls\":%d,\"told\":", phases_made, controls);
    print_counts(log, world_rank);
    fprintf(log, "}\n");
    return fclose(log) || wrong ? 9 : 0;
}
