/* Registers name-value pairs the way the Adiak library lists them, and is one rank or several.
 *
 * usage: registers_pairs [ARGUMENT...]
 *
 * Its own `adiak_list_namevals` has the interface of adiak_tool.h, so that no library is needed.
 */
#include <mpi.h>
#include <stddef.h>

struct datatype {
    int kind, numerical, elements, subtypes;
    struct datatype **subtype;
    int is_reference, reference_elements;
    size_t bytes;
};

union value {
    long number;
    int integer;
    double real;
    const void *pointer;
    union value *values;
};

typedef void callback(const char *, int, const char *, union value *, struct datatype *, void *);

enum { INT = 3, DOUBLE = 5, STRING = 9, LIST = 14, UNKNOWN = 99 };
enum { GENERAL = 2, CONTROL = 4 };

__attribute__((visibility("default"))) void adiak_list_namevals(int version, int category, callback *take,
                                                                void *opaque) {
    struct datatype integer = {INT, 4, 0, 0, NULL, 0, 0, 4}, real = {DOUBLE, 4, 0, 0, NULL, 0, 0, 8};
    struct datatype text = {STRING, 2, 0, 0, NULL, 0, 0, 8}, unknown = {UNKNOWN, 0, 0, 0, NULL, 0, 0, 8};
    struct datatype *of[1] = {&integer};
    struct datatype list = {LIST, 1, 3, 1, of, 0, 0, 0}, kept_by_program = {LIST, 1, 0, 1, of, 1, 3, 0};
    union value sizes[3] = {{.integer = 4}, {.integer = 8}, {.integer = -16}};
    if (version != 1 || category != 1) return;
    take("cells", GENERAL, "mesh", &(union value){.integer = 1200}, &integer, opaque);
    take("tolerance", GENERAL, NULL, &(union value){.real = 0.25}, &real, opaque);
    take("solver", GENERAL, NULL, &(union value){.pointer = "multigrid"}, &text, opaque);
    take("levels", GENERAL, NULL, &(union value){.values = sizes}, &list, opaque);
    take("mine", GENERAL, NULL, &(union value){.pointer = sizes}, &kept_by_program, opaque);
    take("odd", GENERAL, NULL, &(union value){.number = 7}, &unknown, opaque);
    take("flush", CONTROL, NULL, &(union value){.pointer = ""}, &text, opaque);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
