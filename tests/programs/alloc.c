/* Counts heap allocations while MPI calls repeat: prints how many a thousand rounds made, after a
 * thousand to warm up. The program's own malloc serves every library of the process. */
#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long allocations;

void *malloc(size_t bytes) { allocations++; return __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { allocations++; return __libc_calloc(n, bytes); }
void *realloc(void *at, size_t bytes) { allocations++; return __libc_realloc(at, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { allocations++; return __libc_memalign(align, bytes); }
int posix_memalign(void **at, size_t align, size_t bytes) {
    allocations++;
    *at = __libc_memalign(align, bytes);
    return *at ? 0 : 12;
}

enum { ROUNDS = 1000, REQUESTS = 8 };

static void rounds(void) {
    int value = 1, out[REQUESTS], flag, rank, indices[REQUESTS], done;
    MPI_Request requests[REQUESTS], one;
    MPI_Status statuses[REQUESTS];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        for (int i = 0; i < REQUESTS; i++)
            MPI_Irecv(&out[i], 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_SELF, &requests[i]);
        MPI_Waitall(REQUESTS, requests, round % 2 ? statuses : MPI_STATUSES_IGNORE);
        for (int i = 0; i < REQUESTS; i++)
            MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_SELF, &requests[i]);
        for (int left = REQUESTS; left > 0; left -= done)
            MPI_Waitsome(REQUESTS, requests, &done, indices, statuses);
        MPI_Irecv(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &one);
        for (flag = 0; !flag;)
            MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_SELF);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long made = 0;
    /* The same way to each call both times. */
    volatile int parts = 2;
    for (int part = 0; part < parts; part++) {
        long before = allocations;
        rounds();
        made = allocations - before;
    }
    printf("%ld\n", made);
    MPI_Finalize();
    return 0;
}
