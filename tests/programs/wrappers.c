/* A library through which a program calls MPI: functions that pass a call on, one of them by way of a function that has
   no name where the library is stripped. */
#include <mpi.h>

#define KEEP __attribute__((noinline, noclone))

static KEEP int add(const double *in, double *out)
{
    int code = MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? 0 : 1;
}

KEEP int xx_total(const double *in, double *out)
{
    return add(in, out) == 0 ? 0 : 2;
}

KEEP int xx_shift(const double *out, double *in, int to, int from)
{
    int code = MPI_Sendrecv(out, 2, MPI_DOUBLE, to, 5, in, 2, MPI_DOUBLE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? 0 : 1;
}

KEEP int xx_meet(void)
{
    int code = MPI_Barrier(MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? 0 : 1;
}
