/* Messages between memory of the host and memory that a stand-in calls a device's (fake_devices.cc).
 *
 * usage: device_buffers LIBRARY    each rank prints the last error of HIP's, where LIBRARY has one
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES 65536
#define TURNS 50

static char *mapped(void) {
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) abort();
    return at;
}

int main(int argc, char **argv) {
    int rank, ranks, on_stack = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *host = mapped();
    /* Before there is a device. */
    MPI_Bcast(host, 8, MPI_CHAR, 0, MPI_COMM_WORLD);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) MPI_Abort(MPI_COMM_WORLD, 1);
    void (*add)(void *, uintptr_t, int) = (void (*)(void *, uintptr_t, int))dlsym(library, "stand_in_add");
    int (*last)(void) = (int (*)(void))dlsym(library, "hipPeekAtLastError");
    char *own[2];
    for (int device = 0; device < 2; device++) {
        own[device] = mapped();
        add(own[device], BYTES, device);
    }
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Sendrecv(own[0] + 64, 100, MPI_CHAR, next, 1, own[1] + turn, 100, MPI_CHAR, previous, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(host, 100, MPI_CHAR, next, 2, host + 4096, 100, MPI_CHAR, previous, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &on_stack, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("last error %d\n", last ? last() : 0);
    MPI_Finalize();
    return 0;
}
