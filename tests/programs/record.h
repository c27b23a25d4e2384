/* A reference log of MPI calls, written by the program itself.
 *
 * The program calls record() after each MPI call with what it knows of the arguments: one JSON
 * line {"fn":…, "args":{…}, "out":{…}} per call. Handles get the program's own numbers.
 *
 * The layout of a call is a list of NAME:KIND words; those after "|" are outputs.
 *   i int          l truth value     r rank          g tag           u int or MPI_UNDEFINED
 *   b buffer       t datatype        o operation     c communicator  p group
 *   q request      Q requests        I ints          L truth values  s status   S statuses
 *   T datatypes    A addresses       ? a value that is not known (takes no argument)
 * Q, I, L, S, T, A take a count and a pointer. Requests are given by the program's numbers (0:
 * MPI_REQUEST_NULL). A NULL status was passed as MPI_STATUS_IGNORE; one whose MPI_SOURCE is
 * UNKNOWN belongs to a send, where MPI leaves the fields undefined.
 */
#ifndef RECORD_H
#define RECORD_H

#include "tally.h"

#include <mpi.h>
#include <stdarg.h>
#include <string.h>

#define UNKNOWN (-424242)
#define MOST_OBJECTS 64

static FILE *log_file;

/* ---- names of objects --------------------------------------------------------------------- */

static struct { MPI_Comm handle; int number; } comms[MOST_OBJECTS];
static struct { MPI_Datatype handle; int number; } types[MOST_OBJECTS];
static struct { MPI_Group handle; int number; } groups[MOST_OBJECTS];
static int comm_slots, type_slots, group_slots, last_number;

/* A new object has a new number; a freed one gives up its slot, as MPI may give its handle again. */
#define DEFINE_OBJECTS(kind, Handle, table, slots)                                               \
    static void made_##kind(Handle handle) {                                                     \
        int i = 0;                                                                               \
        while (i < slots && table[i].number) i++;                                                \
        if (i == MOST_OBJECTS) { fprintf(stderr, "record.h: MOST_OBJECTS is too small\n"); exit(9); } \
        if (i == slots) slots++;                                                                 \
        table[i].handle = handle;                                                                \
        table[i].number = ++last_number;                                                         \
    }                                                                                            \
    static int number_of_##kind(Handle handle) {                                                 \
        for (int i = 0; i < slots; i++)                                                          \
            if (table[i].number && table[i].handle == handle) return table[i].number;            \
        return 0;                                                                                \
    }                                                                                            \
    static void freed_##kind(int number) {                                                       \
        for (int i = 0; i < slots; i++)                                                          \
            if (table[i].number == number) table[i].number = 0;                                  \
    }
DEFINE_OBJECTS(comm, MPI_Comm, comms, comm_slots)
DEFINE_OBJECTS(type, MPI_Datatype, types, type_slots)
DEFINE_OBJECTS(group, MPI_Group, groups, group_slots)

static int new_number(void) { return ++last_number; }

/* Two live requests that MPI gave one handle: nobody who sees handles can tell them apart. */
static void shared_requests(int one, int other) {
    fprintf(log_file, "{\"shared\":[\"request:%d\",\"request:%d\"]}\n", one, other);
}

/* ---- values ------------------------------------------------------------------------------- */

static void put_rank(int rank) {
    if (rank == MPI_ANY_SOURCE) fputs("\"MPI_ANY_SOURCE\"", log_file);
    else if (rank == MPI_PROC_NULL) fputs("\"MPI_PROC_NULL\"", log_file);
    else if (rank == MPI_UNDEFINED) fputs("\"MPI_UNDEFINED\"", log_file);
    else fprintf(log_file, "%d", rank);
}

static void put_tag(int tag) {
    if (tag == MPI_ANY_TAG) fputs("\"MPI_ANY_TAG\"", log_file);
    else fprintf(log_file, "%d", tag);
}

static void put_comm(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) fputs("\"MPI_COMM_NULL\"", log_file);
    else if (comm == MPI_COMM_WORLD) fputs("\"world\"", log_file);
    else if (comm == MPI_COMM_SELF) fputs("\"self\"", log_file);
    else fprintf(log_file, "\"comm:%d\"", number_of_comm(comm));
}

static void put_group(MPI_Group group) {
    if (group == MPI_GROUP_NULL) fputs("\"MPI_GROUP_NULL\"", log_file);
    else if (group == MPI_GROUP_EMPTY) fputs("\"MPI_GROUP_EMPTY\"", log_file);
    else fprintf(log_file, "\"group:%d\"", number_of_group(group));
}

static void put_type(MPI_Datatype type) {
    const char *name = NULL;
    if (type == MPI_DATATYPE_NULL) name = "MPI_DATATYPE_NULL";
    else if (type == MPI_BYTE) name = "MPI_BYTE";
    else if (type == MPI_CHAR) name = "MPI_CHAR";
    else if (type == MPI_INT) name = "MPI_INT";
    else if (type == MPI_LONG) name = "MPI_LONG";
    else if (type == MPI_DOUBLE) name = "MPI_DOUBLE";
    if (name) fprintf(log_file, "\"%s\"", name);
    else fprintf(log_file, "\"type:%d\"", number_of_type(type));
}

static void put_op(MPI_Op op) {
    const char *name = op == MPI_SUM ? "MPI_SUM" : op == MPI_MAX ? "MPI_MAX" : op == MPI_MIN ? "MPI_MIN" : "?";
    fprintf(log_file, "\"%s\"", name);
}

static void put_buffer(const void *buffer) {
    if (buffer == MPI_IN_PLACE) fputs("\"MPI_IN_PLACE\"", log_file);
    else fprintf(log_file, "\"0x%lx\"", (unsigned long)buffer);
}

static void put_request(int number) {
    if (number) fprintf(log_file, "\"request:%d\"", number);
    else fputs("\"MPI_REQUEST_NULL\"", log_file);
}

static void put_status(const MPI_Status *status) {
    if (!status) { fputs("{\"ignored\":true}", log_file); return; }
    if (status->MPI_SOURCE == UNKNOWN) { fputs("{\"any\":true}", log_file); return; }
    fputs("{\"source\":", log_file);
    put_rank(status->MPI_SOURCE);
    fputs(",\"tag\":", log_file);
    put_tag(status->MPI_TAG);
    fputs("}", log_file);
}

/* ---- the log ------------------------------------------------------------------------------ */

static void put_array(char kind, int count, const void *items) {
    fputc('[', log_file);
    for (int i = 0; i < count; i++) {
        if (i) fputc(',', log_file);
        switch (kind) {
        case 'Q': put_request(((const int *)items)[i]); break;
        case 'I': fprintf(log_file, "%d", ((const int *)items)[i]); break;
        case 'L': fputs(((const int *)items)[i] ? "true" : "false", log_file); break;
        case 'S': put_status(&((const MPI_Status *)items)[i]); break;
        case 'T': put_type(((const MPI_Datatype *)items)[i]); break;
        default: fprintf(log_file, "%ld", (long)((const MPI_Aint *)items)[i]);
        }
    }
    fputc(']', log_file);
}

static void record(const char *function, const char *layout, ...) {
    count_call(function);
    if (!log_file) return;
    va_list values;
    va_start(values, layout);
    fprintf(log_file, "{\"fn\":\"%s\",\"args\":{", function);
    int first = 1;
    for (const char *at = layout; *at;) {
        if (*at == ' ') { at++; continue; }
        if (*at == '|') { fputs("},\"out\":{", log_file); first = 1; at++; continue; }
        const char *colon = strchr(at, ':');
        char kind = colon[1];
        fprintf(log_file, "%s\"%.*s\":", first ? "" : ",", (int)(colon - at), at);
        first = 0;
        at = colon + 2;
        switch (kind) {
        case 'i': fprintf(log_file, "%d", va_arg(values, int)); break;
        case 'l': fputs(va_arg(values, int) ? "true" : "false", log_file); break;
        case 'r': case 'u': put_rank(va_arg(values, int)); break;
        case 'g': put_tag(va_arg(values, int)); break;
        case 'b': put_buffer(va_arg(values, const void *)); break;
        case 't': put_type(va_arg(values, MPI_Datatype)); break;
        case 'o': put_op(va_arg(values, MPI_Op)); break;
        case 'c': put_comm(va_arg(values, MPI_Comm)); break;
        case 'p': put_group(va_arg(values, MPI_Group)); break;
        case 'q': put_request(va_arg(values, int)); break;
        case 's': put_status(va_arg(values, const MPI_Status *)); break;
        case '?': fputs("{\"any\":true}", log_file); break;
        default: {
            int count = va_arg(values, int);
            put_array(kind, count, va_arg(values, const void *));
        }
        }
    }
    if (!strchr(layout, '|')) fputs("},\"out\":{", log_file);
    fputs("}}\n", log_file);
    va_end(values);
}

#endif
