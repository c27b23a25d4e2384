/* Ways out of an MPI call other than its return, and processes that are not ranks.
 *
 * usage: control longjmp | fork | shell
 *   longjmp   an error handler jumps out of MPI, from frames of any depth, and MPI is called again
 *             from shallower and from deeper ones; prints how often it was called
 *   fork      children that exit, _exit, print or abort between MPI calls; MPI goes on in the parent
 *   shell     system() and popen() between MPI calls
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks, handled;
static jmp_buf back;

static void jump(MPI_Comm *comm, int *code, ...) {
    int class;
    (void)comm;
    MPI_Error_class(*code, &class);
    handled++;
    longjmp(back, class == MPI_ERR_RANK ? 1 : 2);
}

/* Calls `what` from `depth` frames down. */
static __attribute__((noinline)) int from_below(int depth, int (*what)(void)) {
    volatile char room[300];
    room[0] = room[299] = (char)depth;
    int result = depth > 0 ? from_below(depth - 1, what) : what();
    return result + (room[0] - room[299]);
}

static int to_nobody(void) { return MPI_Send(&rank, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD); }

static int from_nobody(void) {
    MPI_Request request;
    return MPI_Irecv(&rank, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD, &request);
}

static int together(void) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void jumps(void) {
    static const int depths[] = {0, 1, 12, 3, 0, 40, 2, 7};
    enum { DEPTHS = sizeof depths / sizeof *depths };
    volatile int sum = 0, jumped[3] = {0};
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (volatile int left = 0; left < DEPTHS; left++)
        for (volatile int entered = 0; entered < DEPTHS; entered++) {
            int how = setjmp(back);
            jumped[how]++;
            if (how == 0) from_below(depths[left], entered % 2 ? from_nobody : to_nobody);
            sum += from_below(depths[entered], together);
            sum += from_below(depths[(entered + left) % DEPTHS], together);
        }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    printf("rank %d: handled %d, %d tries, %d and %d jumps, sum %d\n", rank, handled, jumped[0], jumped[1],
           jumped[2], sum);
}

/* One turn of a ring. */
static int turn(int value) {
    int in = -1;
    MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return in;
}

static int ended_by(int child) {
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void at_exit(void) { (void)!write(2, "", 0); }

static void children(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    atexit(at_exit);
    int sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int kind = 0; kind < 5; kind++) {
            int child = fork();
            if (child == 0) {
                usleep(1000 * kind);
                if (getpid() == getppid()) _exit(99);
                switch (kind) {
                case 0: exit(10);
                case 1: _exit(11);
                case 2: printf("rank %d: child of round %d\n", rank, round); exit(12);
                case 3: execl("/bin/sh", "sh", "-c", "exit 13", (char *)NULL); _exit(98);
                default: abort();
                }
            }
            sum += turn(kind);
            printf("rank %d: child %d ended by %d\n", rank, kind, ended_by(child));
            fflush(stdout);
            sum += turn(kind);
        }
        /* One that is left behind: it ends after the job may have. */
        if (fork() == 0) {
            fclose(stdout);
            usleep(200000);
            exit(0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("rank %d: sum %d\n", rank, sum);
}

static void shells(void) {
    char line[64] = "";
    int sum = turn(1), status = system("exit 5");
    FILE *pipe = popen("echo out of a pipe; exit 6", "r");
    sum += turn(2);
    if (!fgets(line, sizeof line, pipe)) line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    int closed = pclose(pipe);
    sum += turn(3);
    printf("rank %d: %d, \"%s\", %d, sum %d\n", rank, WEXITSTATUS(status), line, WEXITSTATUS(closed), sum);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!strcmp(mode, "longjmp")) jumps();
    else if (!strcmp(mode, "fork")) children();
    else if (!strcmp(mode, "shell")) shells();
    else MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Finalize();
    return 0;
}
