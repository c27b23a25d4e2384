/* Ways for a job to end, and what may be asked before and after MPI.
 *
 * usage: ends MODE     (see `modes` at the end)
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static int turn(int value) {
    int in = -1;
    MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return in;
}

/* From here on output goes to ends.<rank>: launchers may lose what is said last. */
static void begin(void) {
    char name[32];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, "ends.%d", rank);
    if (!freopen(name, "w", stdout)) MPI_Abort(MPI_COMM_WORLD, 9);
    for (int i = 0; i < 20; i++) turn(i);
}

static void ask(const char *when) {
    int initialized = -1, finalized = -1, version = 0, subversion, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    MPI_Get_version(&version, &subversion);
    MPI_Get_library_version(text, &length);
    printf("rank %d %s: %d %d, version %d, %s\n", rank, when, initialized, finalized, version,
           length > 3 ? "named" : "nameless");
    fflush(stdout);
}

/* No rank leaves before every rank has come this far, whoever ends the job first. */
static void together(void) { MPI_Barrier(MPI_COMM_WORLD); }

static int ask_around(void) {
    ask("before");
    begin();
    ask("between");
    MPI_Finalize();
    ask("after");
    return 0;
}

/* MPICH ends the job here. */
static int clock_after(void) {
    begin();
    MPI_Finalize();
    printf("rank %d: clock %s\n", rank, MPI_Wtime() > 0 ? "runs" : "stands");
    return 0;
}

static int never(void) {
    ask("alone");
    usleep(200000); /* MPICH's launcher may die of a broken pipe where ranks end before it has spoken to all */
    return 5;
}

static int leave_main(void) { begin(); together(); return 0; }
static int leave_main_badly(void) { begin(); together(); return 3; }
static int leave_by_exit(void) { begin(); together(); exit(6); }
static int leave_at_once(void) { begin(); together(); _exit(7); }

static void finalize(void) {
    turn(1);
    MPI_Finalize();
    printf("rank %d: finalized at exit\n", rank);
    fflush(stdout);
}
static int finalize_at_exit(void) { begin(); atexit(finalize); return 0; }

static int abort_all(void) { begin(); together(); MPI_Abort(MPI_COMM_WORLD, 11); return 99; }

/* The others wait for a message that never comes. */
static int abort_one(void) {
    int in;
    begin();
    if (rank == ranks - 1) {
        printf("rank %d gives up\n", rank);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 12);
    }
    MPI_Recv(&in, 1, MPI_INT, rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 99;
}
static int abort_self(void) { begin(); together(); MPI_Abort(MPI_COMM_SELF, 13); return 99; }

static int fatal(void) {
    begin();
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD);
    MPI_Recv(&ranks, 1, MPI_INT, rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 99;
}

static void leave(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    exit(14);
}
/* From inside an MPI call. */
static int exit_in_handler(void) {
    MPI_Errhandler handler;
    begin();
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    together();
    MPI_Send(&rank, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD);
    return 99;
}

static int terminated(void) {
    begin();
    together();
    raise(SIGTERM);
    return 99;
}

static int became_another(void) {
    begin();
    MPI_Finalize();
    execl("/bin/sh", "sh", "-c", "exit 15", (char *)NULL);
    return 99;
}

/* Attributes of MPI_COMM_SELF are deleted last-in first-out, and MPI still works meanwhile. */
static int deleted;
static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    int flag = -1, mine = -1, result = -1;
    (void)key;
    deleted++;
    MPI_Finalized(&flag);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    MPI_Comm_compare(comm, MPI_COMM_SELF, &result);
    MPI_Barrier(MPI_COMM_SELF);
    printf("rank %d: %d. deletion: %s of %s, finalized %d, in rank %d, ring %d\n", rank, deleted,
           (char *)value, (char *)extra, flag, mine, result == MPI_IDENT ? turn(deleted) : 0);
    fflush(stdout);
    return MPI_SUCCESS;
}
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key;
    printf("rank %d: %s of %s copied\n", rank, (char *)in, (char *)extra);
    *(void **)out = "copy";
    *flag = 1;
    return MPI_SUCCESS;
}
static int callbacks(void) {
    int keys[4], flag;
    void *value;
    MPI_Comm again, of_self;
    begin();
    for (int i = 0; i < 4; i++)
        MPI_Comm_create_keyval(copy, delete, &keys[i], i < 2 ? "the first two" : "the last two");
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], "zero");
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[2], "two");
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[1], "one");
    MPI_Comm_set_attr(MPI_COMM_WORLD, keys[3], "three");
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    MPI_Comm_get_attr(again, keys[3], &value, &flag);
    printf("rank %d: %d %s\n", rank, flag, flag ? (char *)value : "");
    MPI_Comm_free(&again);
    MPI_Comm_dup(MPI_COMM_SELF, &of_self);
    MPI_Comm_delete_attr(MPI_COMM_SELF, keys[2]);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], "zero once more");
    MPI_Comm_free(&of_self);
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keys[3]);
    fflush(stdout);
    MPI_Finalize();
    printf("rank %d: %d deletions\n", rank, deleted);
    return 0;
}

/* The last rank's fails, and takes its time before. */
static int failing(MPI_Comm comm, int key, void *value, void *extra) {
    int here;
    usleep(1000);
    MPI_Comm_rank(comm, &here);
    printf("rank %d deletes\n", rank);
    return rank == ranks - 1 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int callback_fails(void) {
    int key;
    begin();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, failing, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    printf("rank %d ends: %d\n", rank, MPI_Finalize());
    return 0;
}

static const struct { const char *name; int (*run)(void); } modes[] = {
    {"ask", ask_around}, {"clock-after", clock_after}, {"never", never}, {"return", leave_main},
    {"return-3", leave_main_badly},
    {"exit", leave_by_exit}, {"_exit", leave_at_once}, {"atexit", finalize_at_exit}, {"abort-all", abort_all},
    {"abort-one", abort_one}, {"abort-self", abort_self}, {"fatal", fatal},
    {"exit-in-handler", exit_in_handler},
    {"terminated", terminated}, {"exec", became_another}, {"callbacks", callbacks},
    {"callback-fails", callback_fails},
};

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc == 2 && !strcmp(argv[1], modes[i].name)) return modes[i].run();
    fprintf(stderr, "usage: ends MODE\n");
    return 9;
}
