/* Correct programs whose arguments are not all meaningful: what MPI does not look at here is garbage,
 * a null datatype, or memory that ends at a page no one may read. Also failed completions.
 * Every rank prints what it got; the last line says that it came through. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define JUNK ((int *)8)

/* The last `bytes` bytes before a page that faults. */
static void *at_the_edge(size_t bytes) {
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    return pages + 4096 - bytes;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, root = 1, all[16] = {0}, mine = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int own = rank + 1, is_root = rank == root;
    MPI_Datatype there = is_root ? MPI_INT : MPI_DATATYPE_NULL;
    int ones[16], places[16], zeros[16] = {0};
    for (int i = 0; i < 16; i++) { ones[i] = 1; places[i] = i; }

    MPI_Gather(&own, 1, MPI_INT, all, 1, there, root, MPI_COMM_WORLD);
    MPI_Gatherv(&own, 1, MPI_INT, all, is_root ? ones : JUNK, is_root ? places : JUNK, there, root,
                MPI_COMM_WORLD);
    MPI_Scatter(all, 1, there, &mine, 1, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Scatterv(all, is_root ? ones : JUNK, is_root ? places : JUNK, there, &mine, 1, MPI_INT, root,
                 MPI_COMM_WORLD);
    if (is_root) MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    else MPI_Scatter(0, 0, MPI_DATATYPE_NULL, &mine, 1, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
    printf("rank %d: %d, %d\n", rank, mine, all[rank]);

    MPI_Datatype types[16];
    int offsets[16] = {0};
    for (int i = 0; i < 16; i++) types[i] = MPI_INT;
    int other[16];
    MPI_Alltoallw(all, zeros, offsets, types, other, zeros, offsets, types, MPI_COMM_WORLD);

    /* Two groups, of one rank and of the others. */
    MPI_Comm half, between;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 7, &between);
    int one_root = rank == 0 ? MPI_ROOT : 0;
    MPI_Gatherv(&own, rank == 0 ? 0 : 1, MPI_INT, all, rank == 0 ? ones : JUNK, rank == 0 ? places : JUNK,
                rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, one_root, between);
    int locals, *shares, sum[16];
    MPI_Comm_size(half, &locals);
    shares = at_the_edge(sizeof(int) * locals);
    for (int i = 0; i < locals; i++) shares[i] = rank == 0 ? ranks - 1 : 1;
    MPI_Reduce_scatter(all, sum, shares, MPI_INT, MPI_SUM, between);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);

    MPI_Info info;
    char *value = at_the_edge(8);
    int found = 1;
    memset(value, 'x', 8);
    MPI_Info_create(&info);
    MPI_Info_set(info, "there", "yes");
    MPI_Info_get(info, "absent", 7, value, &found);
    printf("rank %d: found %d\n", rank, found);
    MPI_Info_get(info, "there", 7, value, &found);
    printf("rank %d: found %d %s\n", rank, found, value);
    MPI_Info_free(&info);

    /* A receive too short fails; the requests after it must keep their names. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 3; round++) {
        int two[2] = {1, 2}, got[2];
        MPI_Request r[2];
        MPI_Irecv(got, round == 0 ? 1 : 2, MPI_INT, 0, round, MPI_COMM_SELF, &r[0]);
        MPI_Isend(two, 2, MPI_INT, 0, round, MPI_COMM_SELF, &r[1]);
        MPI_Status s[2];
        int code = MPI_Waitall(2, r, s), class;
        MPI_Error_class(code, &class);
        for (int i = 0; i < 2; i++) /* what the failure left behind */
            if (r[i] != MPI_REQUEST_NULL) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        printf("rank %d: round %d %s\n", rank, round, class == MPI_SUCCESS ? "good" : "bad");
    }
    printf("rank %d came through\n", rank);
    MPI_Finalize();
    return 0;
}
