/* Who calls which profiling function while a job is on its way, to be preloaded behind ampl.
 *
 * -DFUNCTIONS="\"file\"" names a file with X(Barrier) X(Wait) … for what the MPI library has. Every PMPI_ entry
 * counts and goes on to the next definition; arguments are words, so that no signature needs to be known.
 * Counted is between count_calls(1) and count_calls(0), which the program calls after MPI_Init and before
 * MPI_Finalize; then each rank writes $COUNT_CALLS_DIR/<rank>.json: {"library":{"MPI_Test":9},"program":{}},
 * calls by libampl.so and by anyone else but MPI itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long word;
typedef long function(word, word, word, word, word, word, word, word, word, word, word, word, word, word, word,
                      word);

struct calls { long library, program; };
static int counting;

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static void count(struct calls *calls, void *caller) {
    Dl_info info;
    if (!counting || !dladdr(caller, &info) || !info.dli_fname) return;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    if (begins(name, "libampl")) __atomic_fetch_add(&calls->library, 1, __ATOMIC_RELAXED);
    else if (!begins(name, "libmpi") && !begins(name, "libopen-") && !begins(name, "mca_"))
        __atomic_fetch_add(&calls->program, 1, __ATOMIC_RELAXED);
}

#define X(name)                                                                                           \
    static struct calls calls_##name;                                                                     \
    long PMPI_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j,      \
                     word k, word l, word m, word n, word o, word p) {                                    \
        static function *next;                                                                            \
        if (!next) next = (function *)dlsym(RTLD_NEXT, "PMPI_" #name);                                    \
        count(&calls_##name, __builtin_return_address(0));                                                \
        return next(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);                                      \
    }
#include FUNCTIONS
#undef X

static void print(FILE *file, const char *name, long calls, int *first) {
    if (calls == 0) return;
    fprintf(file, "%s\"MPI_%s\":%ld", *first ? "" : ",", name, calls);
    *first = 0;
}

void count_calls(int on) {
    char path[4096];
    int first = 1;
    counting = on;
    if (on) return;
    const char *directory = getenv("COUNT_CALLS_DIR"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    snprintf(path, sizeof path, "%s/%s.json", directory ? directory : ".", rank ? rank : "0");
    FILE *file = fopen(path, "w");
    if (!file) { perror(path); exit(9); }
    fputs("{\"library\":{", file);
#define X(name) print(file, #name, calls_##name.library, &first);
#include FUNCTIONS
#undef X
    fputs("},\"program\":{", file);
    first = 1;
#define X(name) print(file, #name, calls_##name.program, &first);
#include FUNCTIONS
#undef X
    fputs("}}\n", file);
    fclose(file);
}
