/*
 * A stencil with Kokkos, whose regions and kernels ampl sees: stencil STEPS
 *
 * Rank 0 prints how often each was passed between MPI_Init and MPI_Finalize: `called NAME TIMES`.
 */
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>

using Line = Kokkos::View<double *, Kokkos::HostSpace>;

static void exchange(const Line &line, int rank, int ranks)
{
    const int last = int(line.extent(0)) - 1;
    Kokkos::Profiling::pushRegion("exchange");
    MPI_Sendrecv(&line(last - 1), 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &line(0), 1, MPI_DOUBLE,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    Kokkos::Profiling::popRegion();
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Kokkos::initialize(argc, argv);
    const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
    int relaxed = 0;
    double norm = 0;
    {
        Line line("line", 1000), next("next", 1000);
        for (int step = 0; step < steps; step++) {
            Kokkos::Profiling::pushRegion("step");
            exchange(line, rank, ranks);
            for (int sweep = 0; sweep <= step % 3; sweep++, relaxed++)
                Kokkos::parallel_for("relax", Kokkos::RangePolicy<Line::execution_space>(1, 999),
                                     [=](int at) { next(at) = (line(at - 1) + line(at + 1)) / 2 + rank; });
            Kokkos::parallel_reduce("norm", Kokkos::RangePolicy<Line::execution_space>(0, 1000),
                                    [=](int at, double &sum) { sum += next(at); }, norm);
            Kokkos::Profiling::popRegion();
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    Kokkos::finalize();
    MPI_Finalize();
    if (rank == 0)
        std::printf("called exchange %d\ncalled norm %d\ncalled relax %d\ncalled step %d\nnorm %g\n", steps, steps,
                    relaxed, steps, norm);
    return 0;
}
