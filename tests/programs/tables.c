/* Calls whose table is known: tables LATE TURNS
   Rank LATE sleeps before every reduction of all ranks. Reductions and broadcasts go through functions that only pass
   them on: the one has one caller, the other two. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static int rank, ranks, late, turns;

static KEEP int my_MPI_Allreduce(double *in, double *out, MPI_Comm comm)
{
    int code = MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_SUM, comm);
    return code == MPI_SUCCESS ? 0 : 1;
}

static KEEP int my_MPI_Bcast(int *value, int count)
{
    int code = MPI_Bcast(value, count, MPI_INT, 0, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? 0 : 1;
}

static KEEP int reduce_all(void)
{
    double in[2] = {1, rank}, out[2];
    int bad = 0;
    for (int turn = 0; turn < turns; turn++) {
        if (rank == late)
            usleep(40000);
        bad += my_MPI_Allreduce(in, out, MPI_COMM_WORLD);
    }
    return bad;
}

static KEEP int first_half(void)
{
    int value = 7, bad = 0;
    for (int turn = 0; turn < turns; turn++)
        bad += my_MPI_Bcast(&value, 1);
    return bad;
}

static KEEP int second_half(void)
{
    int values[64] = {0};
    return my_MPI_Bcast(values, 64);
}

/* Of communicators that not all ranks are in. */
static KEEP int parts(void)
{
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &part);
    int one = 1, sum = 0, bad = 0;
    for (int turn = 0; turn < turns; turn++)
        bad += MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part) != MPI_SUCCESS;
    MPI_Comm_free(&part);
    return bad;
}

/* Messages of 24, 240 and 2400 bytes, most of them small. */
static KEEP int halo(void)
{
    static double in[400], out[400];
    MPI_Datatype three;
    MPI_Type_vector(3, 1, 1, MPI_DOUBLE, &three);
    MPI_Type_commit(&three);
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, bad = 0;
    for (int turn = 0; turn < turns; turn++) {
        int count = turn == 0 ? 100 : turn % 4 == 0 ? 10 : 1;
        bad += MPI_Sendrecv(out, count, three, to, 5, in, count, three, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&three);
    return bad;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    late = argc > 1 ? atoi(argv[1]) : 1;
    turns = argc > 2 ? atoi(argv[2]) : 12;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int bad = reduce_all() + second_half() + first_half() + parts() + halo();
    MPI_Finalize();
    return bad;
}
