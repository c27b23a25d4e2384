/*
 * Many short calls: asked regular|irregular|regions CALLS
 *
 * Each rank makes about CALLS calls, or edges of regions, most of them to itself: they take as long on a machine that others
 * use. `regular` repeats one exchange. `irregular` draws the number, size and tag of its messages anew in each step, as a mesh
 * that adapts does. `regions` nests six regions around each call.
 */
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, WORDS = 4096, EVERY = 5000 };

static double sent[WORDS], received[WORDS];
static unsigned long long state = 1;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

/* Messages of these sizes to itself; returns the number of calls. */
static long exchange(int messages, const int *words, const int *tags)
{
    MPI_Request requests[2 * MOST];
    for (int at = 0; at < messages; at++)
        MPI_Irecv(received, WORDS, MPI_DOUBLE, 0, tags[at], MPI_COMM_SELF, &requests[at]);
    for (int at = 0; at < messages; at++)
        MPI_Isend(sent, words[at], MPI_DOUBLE, 0, tags[at], MPI_COMM_SELF, &requests[messages + at]);
    MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE);
    return 2 * messages + 1;
}

static long nested(int depth)
{
    static const char *const names[] = {"step", "solve", "sweep", "block", "cell", "flux"};
    if (depth == 6) {
        double one = 1.0, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
        return 1;
    }
    ampl_region_begin(names[depth]);
    long calls = 2 + nested(depth + 1);
    if (depth == 3)
        calls += nested(depth + 1);
    ampl_region_end(names[depth]);
    return calls;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 3) {
        fprintf(stderr, "usage: asked regular|irregular|regions CALLS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long left = atol(argv[2]);
    static const int words[] = {1, 1, 512, 512}, tags[] = {1, 2, 3, 4};
    for (long step = 1; left > 0; step++) {
        if (strcmp(argv[1], "regions") == 0) {
            left -= nested(0);
        } else if (strcmp(argv[1], "regular") == 0) {
            left -= exchange(4, words, tags);
        } else {
            int own[MOST], of[MOST], messages = 1 + (int)draw(MOST);
            for (int at = 0; at < messages; at++) {
                own[at] = 1 << draw(12);
                of[at] = 1 + (int)draw(40);
            }
            left -= exchange(messages, own, of);
        }
        if (step % EVERY == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            left--;
        }
    }
    MPI_Finalize();
    return 0;
}
