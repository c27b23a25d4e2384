/* Rank 0 and each other rank send each other messages, on and on: what is received was sent before. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
  int rank, ranks, turns = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int turn = 0; turn < turns; turn++) {
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    for (int other = 1; other < ranks; other++) {
      if (rank == 0) {
        MPI_Send(&turn, 1, MPI_INT, other, turn, MPI_COMM_WORLD);
        MPI_Recv(&turn, 1, MPI_INT, other, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (rank == other) {
        MPI_Recv(&turn, 1, MPI_INT, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&turn, 1, MPI_INT, 0, turn, MPI_COMM_WORLD);
      }
    }
  }
  MPI_Finalize();
  return 0;
}
