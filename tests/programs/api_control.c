/*
 * MPI_Pcontrol: five windows by markers, of which the third is spent in a pause.
 */
#include <ampl.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    int work = ampl_metric_register("work");
    for (int window = 0; window < 5; window++) {
        if (window == 2)
            MPI_Pcontrol(0);
        for (int i = 0; i <= window; i++) {
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            ampl_metric_add(work, 1);
        }
        if (window == 2)
            MPI_Pcontrol(1);
        if (window % 2)
            MPI_Pcontrol(5, "more", 1.5);
        else
            ampl_marker();
    }
    printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
