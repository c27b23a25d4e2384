/* Statuses that are passed to MPI: such that it has filled with a message, and such that tell of none.
 *
 * usage: asked_status TURNS FILE   on 2 ranks; MPI_Get_count is asked about messages with tag 61 to 66, and no others tell
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define MOST 3

static MPI_Status one, many[MOST];
static int number, in[MOST], out, flag;

/* Bytes that are nobody's. */
static MPI_Status *blank(MPI_Status *status, int length) {
    memset(status, 0x39, length * sizeof *status);
    return status;
}

static void ask(MPI_Status *status) { MPI_Get_count(status, MPI_INT, &number); }

static void turn(int peer, MPI_File file) {
    MPI_Request requests[MOST];
    /* Of a file. */
    MPI_File_write_at(file, 0, &out, 1, MPI_INT, blank(&one, 1));
    ask(&one);
    MPI_Get_elements(&one, MPI_INT, &number);
    /* Of a send, where that of a message was. */
    MPI_Sendrecv(&out, 1, MPI_INT, peer, 61, in, 1, MPI_INT, peer, 61, MPI_COMM_WORLD, &one);
    ask(&one);
    MPI_Isend(&out, 1, MPI_INT, peer, 62, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 62, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], &one);
    MPI_Test_cancelled(&one, &flag);
    ask(&one);
    MPI_Wait(&requests[1], &one);
    ask(&one);
    /* Asked twice, and with a copy of another. */
    ask(&one);
    one.MPI_TAG = 99;
    ask(&one);
    /* Among others. */
    MPI_Sendrecv(&out, 1, MPI_INT, peer, 63, in, 1, MPI_INT, peer, 63, MPI_COMM_WORLD, &many[1]);
    ask(&many[1]);
    MPI_Irecv(&in[0], 1, MPI_INT, peer, 64, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, peer, 64, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&in[2], 1, MPI_INT, peer, 64, MPI_COMM_WORLD, &requests[2]);
    MPI_Send(&out, 1, MPI_INT, peer, 64, MPI_COMM_WORLD);
    MPI_Waitall(MOST, requests, many);
    for (int slot = 0; slot < MOST; slot++) ask(&many[slot]);
    /* Cancelled, and no message at all. */
    MPI_Irecv(in, 1, MPI_INT, peer, 98, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], blank(&one, 1));
    MPI_Test_cancelled(&one, &flag);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], blank(&one, 1));
    MPI_Test_cancelled(&one, &flag);
    MPI_Status_set_elements(blank(&one, 1), MPI_INT, 3);
    ask(&one);
    /* A message that is there. */
    MPI_Isend(&out, 1, MPI_INT, peer, 65, MPI_COMM_WORLD, &requests[0]);
    MPI_Probe(peer, 65, MPI_COMM_WORLD, blank(&one, 1));
    ask(&one);
    MPI_Recv(in, 1, MPI_INT, peer, 65, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ask(&one);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    /* What nobody saw filled. */
    PMPI_Sendrecv(&out, 1, MPI_INT, peer, 97, in, 1, MPI_INT, peer, 97, MPI_COMM_WORLD, &many[2]);
    ask(&many[2]);
}

int main(int argc, char **argv) {
    int rank;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int times = atoi(argv[1]); times > 0; times--) turn(1 - rank, file);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
