// A ring of ranks that relaxes a line of cells, and tells ampl about its time step with objects: a region is
// left however its scope is.
//
//     mpicxx -std=c++17 -I ../../../include stencil.cc -o stencil
//     ampl run -c ../job.toml -- mpirun -n 4 ./stencil
#include <ampl.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int Cells = 1000;

double relax(std::vector<double> &cells, double left, double right)
{
    double change = 0;
    for (std::size_t i = 0; i < cells.size(); i++) {
        double next = (left + cells[i] + (i + 1 < cells.size() ? cells[i + 1] : right)) / 3;
        change += std::fabs(next - cells[i]);
        left = cells[i];
        cells[i] = next;
    }
    return change;
}

double exchange_and_relax(std::vector<double> &cells, int rank, int ranks)
{
    double left, right;
    {
        ampl::Region exchange("EXCHANGE");
        int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
        MPI_Sendrecv(&cells.back(), 1, MPI_DOUBLE, after, 0, &left, 1, MPI_DOUBLE, before, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(&cells.front(), 1, MPI_DOUBLE, before, 1, &right, 1, MPI_DOUBLE, after, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return relax(cells, left, right);
}

} // namespace

int main(int argc, char **argv)
{
    int steps = argc > 1 ? std::atoi(argv[1]) : 40;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    const int timestep = ampl_region_register("TIMESTEP");
    const ampl::Metric cells_done("cells");

    std::vector<double> cells(Cells);
    cells[0] = rank + 1;
    double all = 0;
    for (int step = 0; step < steps; step++) {
        ampl::Region here(timestep);
        double change = exchange_and_relax(cells, rank, ranks);
        cells_done.add(Cells);
        MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        std::printf("change after %d steps: %.6f\n", steps, all);
    MPI_Finalize();
}
