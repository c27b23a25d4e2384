/* Faults, one for each argument.
 *
 * usage: faults_planted [unreceived] [truncation] [request] [communicators] [types] [persistent] [elements] [objects]
 *                       [after] [abort]
 *   unreceived     rank 0 sends rank 1 a message that is never received
 *   truncation     rank 1 receives two numbers into room for one; the error is returned
 *   request        rank 1 posts a receive that it never completes, of a message of rank 2
 *   communicators  rank 1 frees one of two duplicates of its own communicator
 *   types          rank 1 frees one of two datatypes
 *   persistent     rank 1 makes a persistent receive, completes it, and does not free it
 *   elements       rank 1 reduces floating-point numbers, the others whole ones
 *   objects        a file is left; rank 1 frees one of two groups and error handlers
 *   window         a window is left
 *   after          behind all else rank 1 receives from rank 0, which has ended: the job hangs
 *   abort          rank 1 ends the job
 * All ranks take part in an exchange and in collectives without faults.
 */
#include <mpi.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD

static void ignore(MPI_Comm *comm, int *code, ...) { (void) comm, (void) code; }

/* All ranks leave a file; rank 1 one of two groups and error handlers. */
static void objects(int rank) {
    MPI_File file;
    MPI_Group group[2];
    MPI_Errhandler handler[2];
    MPI_File_open(WORLD, "faults_planted.data", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
    for (int number = 0; rank == 1 && number < 2; number++) {
        MPI_Comm_group(WORLD, &group[number]);
        MPI_Comm_create_errhandler(ignore, &handler[number]);
    }
    if (rank == 1) MPI_Group_free(&group[0]), MPI_Errhandler_free(&handler[0]);
}

int main(int argc, char **argv) {
    int rank, ranks, out = 1, two[2] = {1, 2};
    static int in, never, kept;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    for (int step = 0; step < 5; step++) {
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Bcast(&out, 1, MPI_INT, step % ranks, WORLD);
        MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, WORLD);
    }
    for (int at = 1; at < argc; at++) {
        const char *kind = argv[at];
        if (strcmp(kind, "unreceived") == 0 && rank == 0) MPI_Send(&out, 1, MPI_INT, 1, 9, WORLD);
        if (strcmp(kind, "truncation") == 0) {
            MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
            if (rank == 0) MPI_Send(two, 2, MPI_INT, 1, 3, WORLD);
            if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 3, WORLD, MPI_STATUS_IGNORE);
        }
        if (strcmp(kind, "request") == 0 && rank == 2) MPI_Send(&out, 1, MPI_INT, 1, 4, WORLD);
        if (strcmp(kind, "elements") == 0) {
            MPI_Allreduce(&out, &in, 1, rank == 1 ? MPI_FLOAT : MPI_INT, MPI_SUM, WORLD);
        }
        if (strcmp(kind, "objects") == 0) objects(rank);
        if (strcmp(kind, "window") == 0) {
            MPI_Win window;
            MPI_Win_create(&kept, sizeof kept, 1, MPI_INFO_NULL, WORLD, &window);
        }
        if (rank != 1) continue;
        if (strcmp(kind, "abort") == 0) MPI_Abort(WORLD, 3);
        if (strcmp(kind, "request") == 0) MPI_Irecv(&never, 1, MPI_INT, 2, 4, WORLD, &request);
        if (strcmp(kind, "communicators") == 0) {
            MPI_Comm copies[2];
            for (int copy = 0; copy < 2; copy++) MPI_Comm_dup(MPI_COMM_SELF, &copies[copy]);
            MPI_Comm_free(&copies[0]);
        }
        if (strcmp(kind, "types") == 0) {
            MPI_Datatype types[2];
            for (int type = 0; type < 2; type++) MPI_Type_contiguous(2 + type, MPI_INT, &types[type]);
            MPI_Type_free(&types[0]);
        }
        if (strcmp(kind, "persistent") == 0) {
            MPI_Recv_init(&kept, 1, MPI_INT, MPI_PROC_NULL, 5, WORLD, &request);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(WORLD);
    if (rank == 1 && argc > 1 && strcmp(argv[argc - 1], "after") == 0) {
        MPI_Recv(&never, 1, MPI_INT, 0, 6, WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
