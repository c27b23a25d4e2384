/* Has any MPI program call MPI by its public and by its profiling names in turns: preload it before what is to be
 * measured. The profiling names are nobody's to intercept, so that one run times both, and drift has no part.
 *
 * $ALTERNATE says where blocks end, "FUNCTION N BARE FILE": at every N-th call of the function, which should be one
 * that finds no request under way. Of each four blocks the one number BARE, from 0, is bare, so that of four such jobs
 * each block is bare in one. Not half of them: what the library does by the clock falls into wrapped blocks alone.
 * Where MPI_Finalize is entered each process leaves a line per block in FILE.RANK: "WRAPPED CPU_NS CALLS".
 *
 * For Open MPI, whose launcher tells the rank, and programs that call MPI from one thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What programs call in their loops; whatever is missing here is wrapped in all blocks. */
#define FUNCTIONS(X)                                                                                                  \
    X(Allreduce) X(Barrier) X(Bcast) X(Comm_rank) X(Comm_size) X(Iprobe) X(Irecv) X(Isend) X(Recv) X(Reduce) X(Send)  \
    X(Sendrecv) X(Test) X(Wait) X(Waitall) X(Waitany) X(Wtime)

#define WRAPPED(block) ((block) % 4 != bare)

#define ENTRY(name)                                                                                                   \
    __attribute__((used)) static void *target_##name;                                                                 \
    __attribute__((used)) static int left_##name;                                                                     \
    __asm__(".text\n.globl MPI_" #name "\n.type MPI_" #name ", @function\nMPI_" #name ":\n"                           \
            "  incq calls(%rip)\n  decl left_" #name "(%rip)\n  je 2f\n"                                              \
            "1: jmp *target_" #name "(%rip)\n"                                                                        \
            "2: push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n  sub $8, %rsp\n"           \
            "  call turn\n"                                                                                           \
            "  add $8, %rsp\n  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n  jmp 1b\n"        \
            ".size MPI_" #name ", .-MPI_" #name "\n");

__attribute__((used)) static long calls;
__attribute__((used)) static void turn(void);
FUNCTIONS(ENTRY)

static struct function {
    const char *name;
    void **target, *wrapped, *bare;
    int *left;
} functions[] = {
#define ROW(name) {#name, &target_##name, NULL, NULL, &left_##name},
    FUNCTIONS(ROW)};
enum { COUNT = sizeof functions / sizeof *functions, MOST = 1 << 20 };

static struct block {
    long long cpu_ns;
    long calls;
} blocks[MOST];
static int ended = -1, every, bare, *left;
static long long since;
static long before;
static char file[4096];

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1000000000LL * t.tv_sec + t.tv_nsec;
}

/* A block ends, and the next begins; the first call begins the first. */
static void turn(void) {
    if (ended >= 0 && ended < MOST) blocks[ended] = (struct block){now_ns() - since, calls - before};
    ended++;
    for (int i = 0; i < COUNT; i++) {
        struct function *function = &functions[i];
        *function->target = WRAPPED(ended) ? function->wrapped : function->bare;
    }
    *left = every;
    before = calls;
    since = now_ns();
}

__attribute__((constructor)) static void begin(void) {
    char where[64], name[80];
    const char *order = getenv("ALTERNATE");
    int known = order && sscanf(order, "%63s %d %d %4000s", where, &every, &bare, file) == 4;
    for (int i = 0; i < COUNT; i++) {
        struct function *function = &functions[i];
        snprintf(name, sizeof name, "PMPI_%s", function->name);
        function->bare = dlsym(RTLD_NEXT, name);
        *function->target = function->wrapped = dlsym(RTLD_NEXT, name + 1);
        if (known && strcmp(name + 1, where) == 0) *(left = function->left) = every;
    }
}

int MPI_Finalize(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s.%s", file, getenv("OMPI_COMM_WORLD_RANK"));
    FILE *out = left ? fopen(path, "w") : NULL;
    for (int block = 0; out && block < ended && block < MOST; block++)
        fprintf(out, "%d %lld %ld\n", WRAPPED(block), blocks[block].cpu_ns, blocks[block].calls);
    if (!out || fclose(out) != 0) perror(path);
    return ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
}
