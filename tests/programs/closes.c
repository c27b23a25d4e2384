/* Closes descriptors that it has not opened, as careful daemons do, uses their numbers for a file of its own, and
 * then makes as many calls as make any record of them grow.
 *
 * usage: closes CALLS
 *   leaves own.<rank> with a line in it
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* MPI's own connections have small numbers, and are left alone. */
enum { FIRST = 128, PAST = 512 };

int main(int argc, char **argv) {
    int rank, calls = argc > 1 ? atoi(argv[1]) : 1000, sum = 0;
    char name[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int number = FIRST; number < PAST; number++) close(number);
    snprintf(name, sizeof name, "own.%d", rank);
    int own = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    for (int number = FIRST; number < PAST; number++) dup2(own, number);
    for (int call = 0; call < calls; call++) {
        int in = -1;
        MPI_Sendrecv(&call, 1, MPI_INT, rank, 1, &in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += in == call;
    }
    dprintf(own, "%d of %d\n", sum, calls);
    for (int number = FIRST; number < PAST; number++) close(number);
    MPI_Finalize();
    printf("%d calls, %ld bytes\n", sum, (long)lseek(own, 0, SEEK_END));
    return 0;
}
