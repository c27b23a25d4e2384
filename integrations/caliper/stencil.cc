/*
 * A stencil with Caliper's annotations: stencil STEPS
 *
 * Rank 0 prints how often each was passed between MPI_Init and MPI_Finalize: `called NAME TIMES`.
 */
#include <caliper/cali.h>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

static int relaxed;

static void relax(const std::vector<double> &line, std::vector<double> &next)
{
    CALI_CXX_MARK_FUNCTION;
    relaxed++;
    for (std::size_t at = 1; at + 1 < line.size(); at++)
        next[at] = (line[at - 1] + line[at + 1]) / 2;
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
    std::vector<double> line(1000, rank), next(1000);
    for (int step = 0; step < steps; step++) {
        CALI_MARK_BEGIN("step");
        CALI_MARK_COMM_REGION_BEGIN("exchange");
        MPI_Sendrecv(&line[998], 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &line[0], 1, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CALI_MARK_COMM_REGION_END("exchange");
        for (int sweep = 0; sweep <= step % 3; sweep++)
            relax(line, next);
        CALI_MARK_END("step");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        std::printf("called exchange %d\ncalled relax %d\ncalled step %d\n", steps, relaxed, steps);
    return 0;
}
