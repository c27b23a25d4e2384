/* Works for as long as it is told, and touches memory: what counters should say is known.
 *
 * usage: counters WINDOWS MILLIS PAGES [threads | papi | fds]
 *   per window every rank works for (rank + 1) * MILLIS ms of its processor and touches PAGES new pages,
 *   then comes to MPI_Barrier
 *   threads   half of the work is a thread's that exists before MPI_Init, half a new thread's
 *   papi      counts with PAPI itself (dlopened), and prints whether PAPI lets it
 *   fds       prints the number of a file opened after MPI_Init, and runs a child that works
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void work(double millis) {
    double end = now() + millis;
    while (now() < end) {
        for (volatile int turn = 0; turn < 1000; turn++) {
        }
    }
}

static void touch(int pages) {
    long size = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, pages * size, MADV_NOHUGEPAGE);
    for (int page = 0; page < pages; page++) memory[page * size] = 1;
    munmap(memory, pages * size);
}

static sem_t wanted, done;
static double share;

static void *early(void *unused) {
    (void)unused;
    for (;;) {
        sem_wait(&wanted);
        if (share < 0) return NULL;
        work(share);
        sem_post(&done);
    }
}

static void *late(void *unused) {
    (void)unused;
    work(share);
    return NULL;
}

static void threads(double millis) {
    pthread_t other;
    share = millis / 2;
    sem_post(&wanted);
    sem_wait(&done);
    pthread_create(&other, NULL, late, NULL);
    pthread_join(other, NULL);
}

/* What the program does with PAPI: the result of PAPI_start, 0 if it may count. */
static int own_papi(void) {
    void *papi = dlopen("libpapi.so", RTLD_NOW | RTLD_GLOBAL);
    if (!papi) return 0;
    int (*option)(int, void *) = dlsym(papi, "PAPI_get_opt"), (*init)(int) = dlsym(papi, "PAPI_library_init");
    int (*create)(int *) = dlsym(papi, "PAPI_create_eventset"), (*start)(int) = dlsym(papi, "PAPI_start");
    int (*add)(int, const char *) = dlsym(papi, "PAPI_add_named_event"), set = -1;
    if (init(option(21, NULL) & (int)0xffff0000) < 0) return 1000;
    if (create(&set) || add(set, "perf::TASK-CLOCK")) return 2000;
    return start(set);
}

int main(int argc, char **argv) {
    int rank, windows = atoi(argv[1]), pages = atoi(argv[3]), first, provided;
    double millis = atof(argv[2]);
    const char *mode = argc > 4 ? argv[4] : "";
    pthread_t helper;
    sem_init(&wanted, 0, 0);
    sem_init(&done, 0, 0);
    if (!strcmp(mode, "threads")) pthread_create(&helper, NULL, early, NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(mode, "papi")) printf("PAPI_start %d\n", own_papi());
    if (!strcmp(mode, "fds")) {
        first = open("/dev/null", O_RDONLY);
        if (rank == 0) printf("descriptor %d\n", first);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            work(300);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    for (int window = 0; window < windows; window++) {
        if (!strcmp(mode, "threads")) {
            threads((rank + 1) * millis);
        } else {
            work((rank + 1) * millis);
            /* Whatever the machine does, who sleeps gives the processor away. */
            nanosleep(&(struct timespec){0, 100000}, NULL);
        }
        touch(pages);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(mode, "threads")) {
        share = -1;
        sem_post(&wanted);
        pthread_join(helper, NULL);
    }
    MPI_Finalize();
    return 0;
}
