/* Programs whose traces are easily large: one mode each, with what the messages carry by themselves.
 *
 * usage: promise MODE COUNT
 *
 * fast      pairs of ranks exchange small messages as fast as they can
 * churn     every message is in memory that is allocated for it
 * one       as churn, with one buffer
 * offsets   sends from 4,096 places in one block
 * counts    one place sends; how much depends on the rank
 * alltoallv every count is drawn
 * waitsome  rank 0 takes what is there of what the others send
 * idle      computes, and sums up three times
 *
 * Rank 0 prints `entropy BYTES`: the zero-order entropy of what was drawn, or left to chance, of all ranks; and
 * `private BYTES`: the most memory that a rank does not share, before MPI_Finalize.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 4096, DRAWN = 1024, SOME = 8 };

static int rank, ranks;
static unsigned long state = 88172645463325252ul;
/* How often each value was there. */
static double seen[1 << 16];

static unsigned draw(unsigned below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

/* The logarithm of a number from 1 on, to the base 2. */
static double log_of(double number) {
    double whole = 0, part = 0.5, found = 0;
    for (; number >= 2; number /= 2) whole++;
    for (int i = 0; i < 40; i++, part /= 2) {
        number *= number;
        if (number >= 2) number /= 2, found += part;
    }
    return whole + found;
}

static double entropy(const double *of, int values) {
    double all = 0, bits = 0;
    for (int i = 0; i < values; i++) all += of[i];
    for (int i = 0; i < values; i++)
        if (of[i] > 0) bits += of[i] * log_of(all / of[i]);
    return bits / 8;
}

/* Sums up what all ranks have seen, and prints its entropy. */
static void print_entropy(int values) {
    static double all[1 << 16];
    MPI_Reduce(seen, all, values, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("entropy %.0f\n", entropy(all, values));
}

static void print_private(void) {
    long own = 0, most = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file)) {
        long kib;
        if (sscanf(line, "Private_Dirty: %ld", &kib) == 1) own = kib * 1024;
    }
    if (file) fclose(file);
    MPI_Reduce(&own, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("private %ld\n", most);
}

static void fast(long count) {
    int other = rank ^ 1, in, out = rank;
    if (other >= ranks) return;
    for (long i = 0; i < count; i++) {
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &request);
        MPI_Send(&out, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void buffers(long count, int fresh) {
    void *kept[64] = {0};
    char *one = malloc(1 << 14), *in = malloc(1 << 14);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (long i = 0; i < count; i++) {
        unsigned at = draw(64);
        char *out = one;
        if (fresh) {
            free(kept[at]);
            out = kept[at] = malloc(256 + draw(8192));
        }
        memset(out, 1, 256);
        MPI_Sendrecv(out, 256, MPI_CHAR, next, 0, in, 256, MPI_CHAR, before, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void offsets(long count) {
    double *block = calloc(PLACES * 16, sizeof *block), in[16];
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (long i = 0; i < count; i++)
        MPI_Sendrecv(block + i * 1031 % PLACES * 16, 16, MPI_DOUBLE, next, 0, in, 16, MPI_DOUBLE, before, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void counts(long count) {
    static char out[1 << 12], in[1 << 12];
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (long i = 0; i < count; i++) {
        MPI_Request request;
        MPI_Irecv(in, 1 << 12, MPI_CHAR, before, 0, MPI_COMM_WORLD, &request);
        for (int j = 0; j < 1 + (rank * 37 + 11) % 7; j++) MPI_Iprobe(next, 9, MPI_COMM_WORLD, &(int){0}, MPI_STATUS_IGNORE);
        MPI_Send(out, 8 * (1 + (rank * 131 + 17) % 97), MPI_CHAR, next, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void alltoallv(long count) {
    int *numbers = calloc(4 * ranks, sizeof *numbers), *give = numbers, *from = give + ranks;
    int *take = from + ranks, *to = take + ranks;
    char *out = malloc((size_t)ranks * DRAWN), *in = malloc((size_t)ranks * DRAWN);
    for (long i = 0; i < count; i++) {
        for (int j = 0; j < ranks; j++) give[j] = draw(DRAWN);
        MPI_Alltoall(give, 1, MPI_INT, take, 1, MPI_INT, MPI_COMM_WORLD);
        for (int j = 0; j < ranks; j++) {
            from[j] = j > 0 ? from[j - 1] + give[j - 1] : 0;
            to[j] = j > 0 ? to[j - 1] + take[j - 1] : 0;
            seen[give[j]]++, seen[take[j]]++;
        }
        MPI_Alltoallv(out, give, from, MPI_CHAR, in, take, to, MPI_CHAR, MPI_COMM_WORLD);
    }
    print_entropy(DRAWN);
}

static void waitsome(long count) {
    if (rank > 0) {
        for (long i = 0; i < count * SOME; i++) {
            for (volatile unsigned work = draw(3000); work > 0; work--) continue;
            MPI_Send(&i, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
        }
    } else {
        int all = (ranks - 1) * SOME, done, *at = calloc(all, sizeof *at), open = all;
        long *in = calloc(all, sizeof *in), *left = calloc(all, sizeof *left);
        MPI_Request *requests = calloc(all, sizeof *requests);
        for (int i = 0; i < all; i++) {
            MPI_Irecv(in + i, 1, MPI_LONG, 1 + i / SOME, 0, MPI_COMM_WORLD, requests + i);
            left[i] = count - 1;
        }
        while (open > 0) {
            MPI_Waitsome(all, requests, &done, at, MPI_STATUSES_IGNORE);
            seen[done]++;
            for (int i = 0; i < done; i++) {
                seen[all + 1 + at[i]]++;
                if (left[at[i]]-- > 0)
                    MPI_Irecv(in + at[i], 1, MPI_LONG, 1 + at[i] / SOME, 0, MPI_COMM_WORLD, requests + at[i]);
                else
                    open--;
            }
        }
        /* Numbers of completions and indices are drawn apart. */
        printf("entropy %.0f\n", entropy(seen, all + 1) + entropy(seen + all + 1, all));
    }
}

static void idle(long count) {
    double sum = rank, total;
    for (int i = 0; i < 3; i++) {
        for (long j = 0; j < count; j++) sum = sum * 0.5 + 1;
        MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    state += 977ul * rank;
    const char *mode = argc > 1 ? argv[1] : "idle";
    long count = argc > 2 ? atol(argv[2]) : 1000;
    if (!strcmp(mode, "fast")) fast(count);
    else if (!strcmp(mode, "churn")) buffers(count, 1);
    else if (!strcmp(mode, "one")) buffers(count, 0);
    else if (!strcmp(mode, "offsets")) offsets(count);
    else if (!strcmp(mode, "counts")) counts(count);
    else if (!strcmp(mode, "alltoallv")) alltoallv(count);
    else if (!strcmp(mode, "waitsome")) waitsome(count);
    else idle(count);
    print_private();
    MPI_Finalize();
    return 0;
}
