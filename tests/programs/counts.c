/* Many functions, called a different number of times on each rank, and counted by the program.
 *
 * usage: counts LOG     writes {"rank":R,"counts":{FUNCTION:CALLS}} to LOG.<rank>
 *
 * To files, because launchers may cut long lines of several ranks into one another.
 */
#include "tally.h"

#include <mpi.h>

#define CALL(function, ...) (count_call(#function), function(__VA_ARGS__))

static int rank, ranks;

static void queries(void) {
    int flag, version, subversion, length, index;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    void *value;
    CALL(MPI_Initialized, &flag);
    CALL(MPI_Finalized, &flag);
    CALL(MPI_Get_version, &version, &subversion);
    CALL(MPI_Get_library_version, name, &length);
    CALL(MPI_Get_processor_name, name, &length);
    CALL(MPI_Query_thread, &index);
    CALL(MPI_Is_thread_main, &flag);
    CALL(MPI_Comm_get_attr, MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    CALL(MPI_Comm_get_name, MPI_COMM_WORLD, name, &length);
    CALL(MPI_Comm_compare, MPI_COMM_WORLD, MPI_COMM_SELF, &index);
    CALL(MPI_Topo_test, MPI_COMM_WORLD, &index);
    CALL(MPI_Error_class, MPI_SUCCESS, &index);
    CALL(MPI_Error_string, MPI_ERR_TAG, name, &length);
    for (int i = 0; i < 5 + rank; i++) CALL(MPI_Wtime);
    for (int i = 0; i < 3; i++) CALL(MPI_Wtick);
}

static void groups_and_comms(void) {
    MPI_Group world, some, rest, both;
    MPI_Comm comm, copy;
    int size, position, result, zero = 0, translated;
    CALL(MPI_Comm_group, MPI_COMM_WORLD, &world);
    CALL(MPI_Group_incl, world, 1, &zero, &some);
    CALL(MPI_Group_difference, world, some, &rest);
    CALL(MPI_Group_union, some, rest, &both);
    CALL(MPI_Group_compare, world, both, &result);
    CALL(MPI_Group_size, rest, &size);
    CALL(MPI_Group_rank, world, &position);
    CALL(MPI_Group_translate_ranks, some, 1, &zero, world, &translated);
    CALL(MPI_Comm_create, MPI_COMM_WORLD, both, &comm);
    CALL(MPI_Comm_set_name, comm, "again");
    CALL(MPI_Comm_dup, comm, &copy);
    CALL(MPI_Comm_free, &copy);
    CALL(MPI_Comm_free, &comm);
    CALL(MPI_Group_free, &both);
    if (rest != MPI_GROUP_EMPTY) CALL(MPI_Group_free, &rest);
    CALL(MPI_Group_free, &some);
    CALL(MPI_Group_free, &world);
}

static void types(void) {
    MPI_Datatype pairs, every_other, resized;
    MPI_Aint address, lower, extent;
    int bytes, position = 0, items[4] = {1, 2, 3, 4}, taken[4];
    char packed[64];
    CALL(MPI_Get_address, items, &address);
    CALL(MPI_Type_contiguous, 2, MPI_INT, &pairs);
    CALL(MPI_Type_commit, &pairs);
    CALL(MPI_Type_size, pairs, &bytes);
    CALL(MPI_Type_get_extent, pairs, &lower, &extent);
    CALL(MPI_Type_vector, 2, 1, 2, MPI_INT, &every_other);
    CALL(MPI_Type_create_resized, every_other, 0, 4 * sizeof(int), &resized);
    CALL(MPI_Type_commit, &resized);
    CALL(MPI_Pack_size, 2, pairs, MPI_COMM_WORLD, &bytes);
    CALL(MPI_Pack, items, 2, pairs, packed, sizeof packed, &position, MPI_COMM_WORLD);
    position = 0;
    CALL(MPI_Unpack, packed, sizeof packed, &position, taken, 2, pairs, MPI_COMM_WORLD);
    CALL(MPI_Type_free, &resized);
    CALL(MPI_Type_free, &every_other);
    CALL(MPI_Type_free, &pairs);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    int bytes;  /* asked for while MPI waits for the sum */
    CALL(MPI_Type_size, *type, &bytes);
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void collectives(int round) {
    int one = rank + round, *many = calloc(ranks, sizeof(int)), *more = calloc(ranks, sizeof(int));
    MPI_Op op;
    MPI_Request request;
    CALL(MPI_Op_create, add, 1, &op);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    CALL(MPI_Bcast, &one, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CALL(MPI_Allreduce, MPI_IN_PLACE, &one, 1, MPI_INT, op, MPI_COMM_WORLD);
    CALL(MPI_Reduce, rank ? (void *)&one : MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    CALL(MPI_Allgather, &one, 1, MPI_INT, many, 1, MPI_INT, MPI_COMM_WORLD);
    CALL(MPI_Alltoall, many, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD);
    CALL(MPI_Gather, &one, 1, MPI_INT, many, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CALL(MPI_Scatter, many, 1, MPI_INT, &one, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CALL(MPI_Scan, many, more, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CALL(MPI_Exscan, many, more, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CALL(MPI_Reduce_scatter_block, many, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CALL(MPI_Ibarrier, MPI_COMM_WORLD, &request);
    CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
    CALL(MPI_Iallreduce, &rank, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int flag = 0; !flag;) CALL(MPI_Test, &request, &flag, MPI_STATUS_IGNORE);
    CALL(MPI_Op_free, &op);
    free(many);
    free(more);
}

static void messages(int round) {
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, in[4], out[4] = {rank, round, 0, 0};
    int flag, found, indices[4], count;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    /* As many as the rank says, so that a count taken from another rank shows. */
    for (int i = 0; i <= rank; i++) CALL(MPI_Send, out, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    CALL(MPI_Irecv, &in[0], 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
    CALL(MPI_Irecv, &in[1], 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[1]);
    CALL(MPI_Isend, &out[0], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[2]);
    CALL(MPI_Issend, &out[1], 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[3]);
    for (int left_over = 4; left_over > 0; left_over -= found)
        CALL(MPI_Waitsome, 4, requests, &found, indices, statuses);
    CALL(MPI_Irecv, &in[0], 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[0]);
    CALL(MPI_Isend, &out[0], 1, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[1]);
    for (flag = 0; !flag;) CALL(MPI_Testall, 2, requests, &flag, statuses);
    CALL(MPI_Isend, &out[0], 1, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[0]);
    CALL(MPI_Probe, left, 5, MPI_COMM_WORLD, &statuses[0]);
    CALL(MPI_Get_count, &statuses[0], MPI_INT, &count);
    CALL(MPI_Recv, in, 4, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_Waitall, 1, requests, MPI_STATUSES_IGNORE);
    CALL(MPI_Sendrecv_replace, out, 4, MPI_INT, right, 6, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (flag = 0; flag < 3; flag++) CALL(MPI_Iprobe, left, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CALL(MPI_Irecv, in, 4, MPI_INT, left, 98, MPI_COMM_WORLD, &requests[0]);
    CALL(MPI_Cancel, &requests[0]);
    CALL(MPI_Wait, &requests[0], &statuses[0]);
    CALL(MPI_Test_cancelled, &statuses[0], &flag);
}

int main(int argc, char **argv) {
    int rounds = 3, provided;
    char path[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: counts LOG\n");
        return 9;
    }
    CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_FUNNELED, &provided);
    CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size, MPI_COMM_WORLD, &ranks);
    queries();
    groups_and_comms();
    types();
    for (int round = 0; round < rounds; round++) {
        collectives(round);
        messages(round);
    }
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    CALL(MPI_Finalize);
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return 9;
    }
    print_counts(file, rank);
    fclose(file);
    printf("rank %d of %d is done\n", rank, ranks);
    return 0;
}
