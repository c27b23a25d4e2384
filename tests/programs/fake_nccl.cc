/*
 * A stand-in for NCCL's library, which does nothing. At the end it appends a line to the file that NCCL_COUNTS names, if
 * any: the rank, how often its functions were called from outside, and the sum of all counts and last arguments.
 */
#include "nccl/nccl.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct ncclComm {
    int ranks, rank;
    char first;
};

static unsigned long calls, sum;
static int own_rank;

__attribute__((destructor)) static void print()
{
    const char *path = std::getenv("NCCL_COUNTS");
    if (std::FILE *file = path ? std::fopen(path, "a") : nullptr) {
        std::fprintf(file, "rank %d: %lu calls, %lu\n", own_rank, calls, sum);
        std::fclose(file);
    }
}

static ncclResult_t called(size_t count, int type, ncclComm_t comm, cudaStream_t stream)
{
    calls++;
    sum += count + type + comm->ranks + reinterpret_cast<std::uintptr_t>(stream);
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    id->internal[0] = 7;
    id->internal[127] = 9;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    calls++;
    sum += id.internal[0] + id.internal[127];
    own_rank = rank;
    *comm = new ncclComm{ranks, rank, id.internal[0]};
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    calls++;
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *, void *, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t stream)
{
    return called(count, type, comm, stream);
}

ncclResult_t ncclBroadcast(const void *, void *, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    return called(count + root, type, comm, stream);
}

/* As NCCL's own: by the other function, which may be another library's. */
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclReduce(const void *, void *, size_t count, ncclDataType_t type, ncclRedOp_t, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    return called(count + root, type, comm, stream);
}

ncclResult_t ncclAllGather(const void *, void *, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    return called(count, type, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *, void *, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t stream)
{
    return called(count, type, comm, stream);
}

ncclResult_t ncclSend(const void *, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return called(count + peer, type, comm, stream);
}

ncclResult_t ncclRecv(void *, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return called(count + peer, type, comm, stream);
}

ncclResult_t ncclGroupStart(void)
{
    calls++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    calls++;
    return ncclSuccess;
}
