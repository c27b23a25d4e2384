/*
 * A loop as a training program has it, with calls of NCCL between those of MPI: training STEPS [dlsym LIBRARY]
 *
 * Rank 0 prints how often each was called between MPI_Init and MPI_Finalize: `called NAME TIMES`. With `dlsym` it finds the
 * sum over devices in the library's handle, as some frameworks do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ncclResult_t (*sum_t)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);

static float gradient[1 << 16];
static double loss[2];
static int rank, ranks, steps;

static ncclComm_t join(void)
{
    ncclUniqueId id;
    ncclComm_t comm;

    if (rank == 0)
        ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return comm;
}

/* By functions of the library's handle alone. */
static void train_unseen(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW);
    sum_t sum = (sum_t)dlsym(handle, "ncclAllReduce");
    ncclResult_t (*make)(ncclComm_t *, int, ncclUniqueId, int) = dlsym(handle, "ncclCommInitRank");
    ncclUniqueId id;
    ncclComm_t comm;

    memset(&id, 0, sizeof id);
    make(&comm, ranks, id, rank);
    for (int step = 0; step < steps; step++)
        sum(gradient, gradient, 1 << 16, ncclFloat32, ncclSum, comm, NULL);
}

static void train(void)
{
    ncclComm_t all = join(), half = join();
    cudaStream_t stream = (cudaStream_t)3;
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;

    ncclBroadcast(gradient, gradient, 1 << 16, ncclFloat32, 0, all, stream);
    ncclBcast(loss, 2, ncclFloat64, 0, half, stream);
    for (int step = 0; step < steps; step++) {
        ncclAllReduce(gradient, gradient, 1 << 16, ncclFloat32, ncclSum, all, stream);
        ncclReduceScatter(gradient, gradient, 1 << 10, ncclFloat32, ncclSum, all, stream);
        ncclAllGather(gradient, gradient, 1 << 10, ncclFloat32, all, stream);
        ncclReduce(loss, loss, 2, ncclFloat64, ncclSum, 0, half, stream);
        ncclGroupStart();
        ncclSend(gradient, 100, ncclFloat32, next, all, stream);
        ncclRecv(gradient, 100, ncclFloat32, last, all, stream);
        ncclGroupEnd();
        MPI_Allreduce(MPI_IN_PLACE, loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    ncclCommDestroy(half);
    ncclCommDestroy(all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    steps = argc > 1 ? atoi(argv[1]) : 20;
    const int unseen = argc > 3 && strcmp(argv[2], "dlsym") == 0;
    if (unseen)
        train_unseen(argv[3]);
    else
        train();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0 && !unseen) {
        printf("called ncclCommInitRank 2\n");
        printf("called ncclCommDestroy 2\n");
        printf("called ncclBroadcast 1\ncalled ncclBcast 1\ncalled ncclGroup %d\n", steps);
        printf("called ncclAllReduce %d\ncalled ncclReduceScatter %d\ncalled ncclAllGather %d\n", steps, steps, steps);
        printf("called ncclReduce %d\ncalled ncclSend %d\ncalled ncclRecv %d\n", steps, steps, steps);
        printf("called ncclGroupStart %d\ncalled ncclGroupEnd %d\n", steps, steps);
    }
    return 0;
}
