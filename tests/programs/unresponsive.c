/* An MPI that stops serving ampl on one rank, to be preloaded behind ampl: after so many looks at its messages, fewer
 * than a run takes, every further one fails. The program's own calls are left alone: they do not use profiling names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS = 20, FAILS = 16 };

int PMPI_Testsome(long count, void *requests, void *done, void *indices, void *statuses) {
    static int (*next)(long, void *, void *, void *, void *);
    static int looks;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *deaf = getenv("DEAF_RANK");
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Testsome");
    if (rank && deaf && strcmp(rank, deaf) == 0 && ++looks > LOOKS) return FAILS;
    return next(count, requests, done, indices, statuses);
}
