/* Two halves of a job meet at a port, whose name only the roots pass: the others pass an address where nothing is.
 *
 * Prints the name at both roots. Needs an even number of ranks.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, ranks, within, root;
    char name[MPI_MAX_PORT_NAME], *port = (char *)8;
    MPI_Comm half, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int answers = rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, answers, rank, &half);
    MPI_Comm_rank(half, &within);
    root = ranks / 2 - 1;
    if (within == root) {
        port = name;
        if (answers) {
            MPI_Recv(name, sizeof name, MPI_CHAR, ranks - 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Open_port(MPI_INFO_NULL, name);
            MPI_Send(name, sizeof name, MPI_CHAR, ranks - 1, 0, MPI_COMM_WORLD);
        }
        printf("%s\n", name);
        fflush(stdout);
    }
    if (answers) MPI_Comm_connect(port, MPI_INFO_NULL, root, half, &other);
    else MPI_Comm_accept(port, MPI_INFO_NULL, root, half, &other);
    MPI_Comm_disconnect(&other);
    if (within == root && !answers) MPI_Close_port(name);
    MPI_Finalize();
    return 0;
}
