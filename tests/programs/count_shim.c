/* A second opinion on how often a program calls each MPI function.
 *
 * Preloaded behind libampl.so, it sees exactly the calls that ampl passes on. Every entry adds one
 * to the function's own counter and jumps to PMPI, so that no signature needs to be known here.
 * Where MPI_Finalize is entered each rank writes $COUNT_SHIM_DIR/<rank>.json: {"FUNCTION":CALLS}.
 *
 * Counts are not atomic: for programs that call MPI from one thread. A call that MPI makes to itself through
 * its public names would be counted too; the programs of our tests cause none.
 */
#include <stdio.h>
#include <stdlib.h>

/* What LAMMPS and HPCC import. A function that is missing here shows as a difference to ampl's counts. */
#define FUNCTIONS(X)                                                                                 \
    X(Abort) X(Allgather) X(Allgatherv) X(Allreduce) X(Alltoall) X(Alltoallv) X(Barrier)             \
    X(Bcast) X(Cancel) X(Cart_create) X(Cart_get) X(Cart_rank) X(Cart_shift) X(Comm_c2f)             \
    X(Comm_create) X(Comm_dup) X(Comm_f2c) X(Comm_free) X(Comm_group) X(Comm_rank) X(Comm_size)      \
    X(Comm_split) X(Error_string) X(File_close) X(File_get_size) X(File_open) X(File_read_at)        \
    X(File_read_at_all) X(File_set_size) X(File_sync) X(File_write_at) X(File_write_at_all)          \
    X(Finalized) X(Gather) X(Gatherv) X(Get_address) X(Get_count) X(Get_library_version)             \
    X(Get_processor_name) X(Get_version) X(Group_incl) X(Init) X(Initialized) X(Iprobe) X(Irecv)     \
    X(Isend) X(Issend) X(Op_create) X(Op_free) X(Recv) X(Reduce) X(Reduce_scatter)                   \
    X(Request_free) X(Rsend) X(Scan) X(Scatter) X(Scatterv) X(Send) X(Sendrecv) X(Ssend) X(Test)     \
    X(Testany) X(Type_commit) X(Type_contiguous) X(Type_create_struct) X(Type_free) X(Type_size)     \
    X(Type_vector) X(Wait) X(Waitall) X(Waitany) X(Wtick) X(Wtime)

/* clang-format off */
#if defined(__x86_64__)
#define ENTRY(name)                                                                                  \
    long counted_##name;                                                                             \
    __asm__(".text\n.globl MPI_" #name "\n.type MPI_" #name ", @function\nMPI_" #name ":\n"          \
            "  mov counted_" #name "@GOTPCREL(%rip), %r11\n  incq (%r11)\n"                          \
            "  jmp PMPI_" #name "@PLT\n.size MPI_" #name ", .-MPI_" #name "\n");
#elif defined(__aarch64__)
#define ENTRY(name)                                                                                  \
    long counted_##name;                                                                             \
    __asm__(".text\n.globl MPI_" #name "\n.type MPI_" #name ", %function\nMPI_" #name ":\n"          \
            "  adrp x16, :got:counted_" #name "\n  ldr x16, [x16, :got_lo12:counted_" #name "]\n"    \
            "  ldr x17, [x16]\n  add x17, x17, #1\n  str x17, [x16]\n"                               \
            "  b PMPI_" #name "\n.size MPI_" #name ", .-MPI_" #name "\n");
#else
#error "no entry sequence for this processor"
#endif
/* clang-format on */

FUNCTIONS(ENTRY)

int PMPI_Finalize(void);

/* The rank is the launcher's word for it: MPI's constants are data, which the loader resolves at
 * once, and this library is also loaded into shells and launchers, which have no MPI. */
int MPI_Finalize(void) {
    const char *directory = getenv("COUNT_SHIM_DIR"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", directory ? directory : ".", rank ? rank : "0");
    FILE *file = fopen(path, "w");
    if (file) {
        fputs("{\"MPI_Finalize\":1", file);
#define PRINT(name)                                                                                  \
    if (counted_##name) fprintf(file, ",\"MPI_" #name "\":%ld", counted_##name);
        FUNCTIONS(PRINT)
        fputs("}\n", file);
        fclose(file);
    }
    return PMPI_Finalize();
}
