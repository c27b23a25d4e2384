/*
 * A ring of ranks that relaxes a line of cells, and tells ampl about its time step.
 *
 *     mpicc -I ../../../include stencil.c -o stencil
 *     mpirun -n 4 ./stencil                                           # runs as ever
 *     ampl run -c ../job.toml -- mpirun -n 4 ./stencil                # one window per time step
 */
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 1000

static double relax(double *cells, double left, double right)
{
    double change = 0;
    for (int i = 0; i < CELLS; i++) {
        double next = (left + cells[i] + (i + 1 < CELLS ? cells[i + 1] : right)) / 3;
        change += next > cells[i] ? next - cells[i] : cells[i] - next;
        left = cells[i];
        cells[i] = next;
    }
    return change;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    /* Numbers once, outside of the loop. */
    int timestep = ampl_region_register("TIMESTEP");
    int exchange = ampl_region_register("EXCHANGE");
    int cells_done = ampl_metric_register("cells");

    double cells[CELLS] = {0}, all = 0;
    cells[0] = rank + 1;
    for (int step = 0; step < steps; step++) {
        double left, right, change;
        ampl_region_enter(timestep);

        ampl_region_enter(exchange);
        int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
        MPI_Sendrecv(&cells[CELLS - 1], 1, MPI_DOUBLE, after, 0, &left, 1, MPI_DOUBLE, before, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&cells[0], 1, MPI_DOUBLE, before, 1, &right, 1, MPI_DOUBLE, after, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        ampl_region_exit(exchange);

        change = relax(cells, left, right);
        ampl_metric_add(cells_done, CELLS);
        MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

        ampl_region_exit(timestep);
    }
    if (rank == 0)
        printf("change after %d steps: %.6f\n", steps, all);
    MPI_Finalize();
    return 0;
}
