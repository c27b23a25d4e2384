/* MPI's session model, alone and beside the world model.
 *
 * usage: sessions only | around | inside | after
 *   only     no MPI_Init at all
 *   around   a session that begins before MPI_Init and ends after MPI_Finalize
 *   inside   a session between MPI_Init and MPI_Finalize
 *   after    a session that begins when MPI_Finalize has returned
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static MPI_Session session;

static void begin(void) { MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session); }
static void end(void) { MPI_Session_finalize(&session); }

static void work(const char *when) {
    MPI_Group group;
    MPI_Comm comm;
    int rank, ranks, sum, sets;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "tests.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int turn = 0; turn < 10; turn++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    printf("%s, rank %d of %d: %s sets, sum %d\n", when, rank, ranks, sets >= 2 ? "enough" : "too few", sum);
    fflush(stdout);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
}

static void world(void) {
    int rank, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 20; turn++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("world, rank %d: sum %d\n", rank, sum);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    int around = !strcmp(mode, "around"), inside = !strcmp(mode, "inside"), after = !strcmp(mode, "after");
    if (!strcmp(mode, "only") || around) {
        begin();
        work("alone");
    }
    if (around || inside || after) {
        MPI_Init(NULL, NULL);
        if (inside) begin();
        if (!after) work("beside the world");
        world();
        if (inside) end();
        MPI_Finalize();
        if (after) begin();
        if (!inside) work("after the world");
    }
    if (!inside) end();
    return 0;
}
