/* Calls functions that this MPI may lack, as a program does that probes for them by weak symbols. */
#include <mpi.h>
#include <stdio.h>

#if MPI_VERSION < 4
extern int MPI_Session_finalize(void *session) __attribute__((weak));
extern void mpi_session_finalize_(int *session, int *ierror) __attribute__((weak));

static void probe(void) {
    void *session = NULL;
    int number = 0, ierror = 0;
    if (!MPI_Session_finalize) {
        puts("c absent");
    } else {
        puts(MPI_Session_finalize(&session) == MPI_SUCCESS ? "c success" : "c error");
    }
    if (!mpi_session_finalize_) {
        puts("fortran absent");
    } else {
        mpi_session_finalize_(&number, &ierror);
        puts(ierror == MPI_SUCCESS ? "fortran success" : "fortran error");
    }
}
#else
static void probe(void) { puts("c present\nfortran present"); }
#endif

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    probe();
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("end %d\n", size);
    MPI_Finalize();
    return 0;
}
