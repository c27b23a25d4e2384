/* Corners where a watcher that believes what it remembers, or what MPI need not have written, goes wrong.
 *
 * usage: edges freed      a communicator freed in a callback; the next one has its handle and is smaller
 *        edges failed     a completion that fails before it writes how many it completed
 *        edges forked     a child forked in a callback goes on through MPI's return
 *        edges cloned     a child of the system call, which runs no handlers, asks MPI something
 *        edges jumped     many calls below a large array that lies over a frame left by a jump
 *        edges unstacked  a call left for another stack, and its own gone, before the next on a lower one
 *        edges asking     a thread that only asks, below MPI_THREAD_SERIALIZED
 *        edges loader     what the loader has to say of an error is asked for after a first call
 *        edges unseen     receives that end by a profiling name; the next one has the handle
 *        edges contents   more room than MPI_Type_get_contents fills
 */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static int rank;

/* The last `count` ints before memory that must not be touched. */
static int *at_the_edge(int count) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    return (int *)(pages + 4096) - count;
}

static MPI_Comm cached;

static int frees_cached(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_Comm_free(&cached);
}

static pid_t child;

static int forks(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    fflush(stdout);
    child = fork();
    return MPI_SUCCESS;
}

static MPI_Comm host;

/* Has MPI call `callback` when an attribute of `host` is deleted. */
static void call_back(MPI_Comm_delete_attr_function *callback) {
    int key;
    MPI_Comm_dup(MPI_COMM_SELF, &host);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, NULL);
    MPI_Comm_set_attr(host, key, NULL);
    MPI_Comm_delete_attr(host, key);
    MPI_Comm_free_keyval(&key);
}

static void freed(void) {
    int one = 1, sum = 0, zero = 0, out = rank, in = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &cached);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, cached);
    call_back(frees_cached);
    MPI_Comm alone;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    int *count = at_the_edge(1);
    *count = 1;
    MPI_Alltoallv(&out, count, &zero, MPI_INT, &in, count, &zero, MPI_INT, alone);
    printf("rank %d: %d of %d\n", rank, in, sum);
    MPI_Comm_free(&alone);
    MPI_Comm_free(&host);
}

static void failed(void) {
    int into = 0, none = -1;
    MPI_Request requests[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Recv_init(&into, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
    MPI_Start(&requests[0]);
    memset(&requests[1], 0, sizeof requests[1]); /* no request of any MPI */
    int *outcount = at_the_edge(1), *indices = at_the_edge(2);
    *outcount = 2000000000;
    indices[0] = indices[1] = -7;
    int code = MPI_Waitsome(2, requests, outcount, indices, MPI_STATUSES_IGNORE);
    MPI_Error_class(code, &none);
    printf("rank %d: %s\n", rank, none == MPI_SUCCESS ? "success" : "error");
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
}

static void forked(void) {
    int status = -1;
    pid_t parent = getpid();
    call_back(forks);
    if (getpid() != parent) _exit(7);
    MPI_Comm_free(&host);
    waitpid(child, &status, 0);
    printf("rank %d: child %d\n", rank, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void cloned(void) {
    int status = -1, flag = 0;
    child = syscall(SYS_fork);
    if (child == 0) {
        MPI_Initialized(&flag);
        _exit(flag ? 7 : 8);
    }
    waitpid(child, &status, 0);
    printf("rank %d: child %d\n", rank, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static jmp_buf back;

static void jumps(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(back, 1);
}

static volatile int zero_at_run_time;

__attribute__((noinline)) static int from_deep(void) {
    volatile char pad[3000];
    pad[0] = 1;
    int nothing = 0;
    return MPI_Send(&nothing, 1, MPI_INT, 99, 0, MPI_COMM_SELF) + pad[0];
}

__attribute__((noinline)) static int below_an_array(void) {
    char array[65536];
    int sum = 0;
    array[0] = (char)zero_at_run_time;
    for (int i = 0; i < 500; i++) {
        int one = 1, got = 0;
        MPI_Request request;
        MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum += got;
    }
    return sum + array[zero_at_run_time];
}

static void jumped(void) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(jumps, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    if (!setjmp(back)) from_deep();
    printf("rank %d: %d\n", rank, below_an_array());
}

enum { STACK = 256 * 1024 };
static ucontext_t main_stack, other_stack;

static void changes_stack(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    setcontext(&main_stack);
}

static void fails(void) {
    int nothing = 0;
    MPI_Send(&nothing, 1, MPI_INT, 99, 0, MPI_COMM_SELF);
}

static void asks_size(void) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: size %d\n", rank, size);
}

static void run_on(char *stack, void (*function)(void)) {
    getcontext(&other_stack);
    other_stack.uc_stack.ss_sp = stack;
    other_stack.uc_stack.ss_size = STACK;
    other_stack.uc_link = &main_stack;
    makecontext(&other_stack, function, 0);
    swapcontext(&main_stack, &other_stack);
}

static void unstacked(void) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(changes_stack, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run_on(stacks + STACK, fails);
    munmap(stacks + STACK, STACK);
    run_on(stacks, asks_size);
}

static volatile int stop;

static void *asks(void *unused) {
    int flag;
    while (!stop) {
        MPI_Is_thread_main(&flag);
        MPI_Initialized(&flag);
    }
    return unused;
}

static void asking(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, asks, NULL);
    int token = 0;
    for (int i = 0; i < 4; i++) {
        if (rank == 0) {
            usleep(200000);
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("rank %d: done\n", rank);
}

static void loader(void) {
    int length;
    char name[MPI_MAX_PROCESSOR_NAME];
    void *none = dlopen("./no such library.so", RTLD_NOW);
    MPI_Get_processor_name(name, &length);
    const char *said = dlerror();
    printf("rank %d: %s, %s\n", rank, none ? "loaded" : "not loaded", said ? said : "and nothing said");
}

static void unseen(void) {
    int out = rank, in[3], sum = 0;
    for (int turn = 0; turn < 3; turn++) {
        MPI_Request request;
        MPI_Irecv(&in[turn], 1, MPI_INT, rank, turn, MPI_COMM_WORLD, &request);
        PMPI_Send(&out, 1, MPI_INT, rank, turn, MPI_COMM_WORLD);
        if (turn < 2) PMPI_Wait(&request, MPI_STATUS_IGNORE);
        else MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum += in[turn];
    }
    printf("rank %d: %d\n", rank, sum);
}

static void contents(void) {
    MPI_Datatype pair, inner[4], next;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_contiguous(3, pair, &inner[0]);
    MPI_Datatype outer = inner[0];
    for (int i = 1; i < 4; i++) inner[i] = pair; /* what was there before */
    int integers[4], bytes = 0;
    MPI_Aint addresses[4];
    MPI_Type_get_contents(outer, 4, 4, 4, integers, addresses, inner);
    MPI_Type_free(&inner[0]);
    MPI_Type_free(&outer);
    MPI_Type_free(&pair);
    MPI_Type_contiguous(2, MPI_CHAR, &next);
    MPI_Type_commit(&next);
    MPI_Type_size(next, &bytes);
    char text[2] = "ab";
    MPI_Send(text, 1, next, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Isend(text, 1, next, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(text, 1, next, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("rank %d: %d bytes, %d integers\n", rank, bytes, integers[0]);
    MPI_Type_free(&next);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(mode, "freed")) freed();
    else if (!strcmp(mode, "failed")) failed();
    else if (!strcmp(mode, "forked")) forked();
    else if (!strcmp(mode, "cloned")) cloned();
    else if (!strcmp(mode, "jumped")) jumped();
    else if (!strcmp(mode, "unstacked")) unstacked();
    else if (!strcmp(mode, "unseen")) unseen();
    else if (!strcmp(mode, "asking")) asking();
    else if (!strcmp(mode, "loader")) loader();
    else contents();
    MPI_Finalize();
    return 0;
}
