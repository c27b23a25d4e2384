/*
 * Prints which functions of interfaces for tools the process has, `NAME yes` or `NAME no`, and whether OpenMP's would be a
 * tool's: tool_symbols
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static const char *NAMES[] = {
    "kokkosp_init_library", "kokkosp_push_profile_region", "kokkosp_begin_parallel_for", "InitializeInjectionNvtx2",
    "__itt_api_init",       "ompt_start_tool",             "ps_tool_initialize",         "ps_tool_timer_start",
    "cali_begin_region",    "cali_end",                    "_ZN4cali8FunctionC1EPKc",
    "ncclAllReduce",        "ncclGroupStart",
};

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        for (unsigned at = 0; at < sizeof NAMES / sizeof *NAMES; at++)
            printf("%s %s\n", NAMES[at], dlsym(RTLD_DEFAULT, NAMES[at]) ? "yes" : "no");
    MPI_Finalize();
    return 0;
}
