/* Ranks of two classes: in every step those of the one send four times as much as the others.
 *
 * usage: loop_classes STEPS PAUSE
 *   PAUSE  how long a step lasts besides, microseconds
 *
 * One rank in four is of the class that sends 8192 bytes, the others send 2048, to themselves and in parts; then all
 * meet in MPI_Allreduce, of 8 bytes.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { PARTS = 8 };

int main(int argc, char **argv) {
    static char out[8192], in[8192];
    int rank, ranks, steps = atoi(argv[1]), pause = atoi(argv[2]);
    double one = 1, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int step = 0; step < steps; step++) {
        int bytes = (rank % 4 == 1 ? 8192 : 2048) / PARTS;
        for (int part = 0; part < PARTS; part++) {
            MPI_Sendrecv(out, bytes, MPI_BYTE, rank, 1, in, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            nanosleep(&(struct timespec){0, pause * 1000L / PARTS}, NULL);
        }
        MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return all == ranks ? 0 : 9;
}
