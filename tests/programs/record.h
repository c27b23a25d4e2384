/* A reference log of MPI calls, written by the program itself.
 *
 * The program calls record() after each MPI call with what it knows of the arguments: one JSON
 * line {"fn":…, "args":{…}, "out":{…}} per call. Handles get the program's own numbers.
 *
 * The layout of a call is a list of NAME:KIND words; those after "|" are outputs.
 *   i int          l truth value     r rank          g tag           u int or MPI_UNDEFINED
 *   b buffer       t datatype        o operation     c communicator  p group
 *   q request      Q requests        I ints          L truth values  s status   S statuses
 *   T datatypes    A addresses       a other address
 *   ? a value that is not known (takes no argument)
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

static FILE *log_file;  /* none: nothing is logged */

/* ---- names of objects --------------------------------------------------------------------- */

static int last_number;

/* A new object has a new number; a freed one gives up its slot, as MPI may give its handle again.
 * MPI may also answer a query with the handle of a living object: it lives until every holder has
 * freed it. The words after Handle are the objects of that kind that MPI itself defines. */
#define DEFINE_OBJECTS(kind, Handle, ...)                                                        \
    static const struct { Handle handle; const char *name; } kind##_names[] = {__VA_ARGS__};     \
    static struct { Handle handle; int number, holders; } live_##kind##s[MOST_OBJECTS];          \
    static const char *name_of_##kind(Handle handle) {                                           \
        for (unsigned i = 0; i < sizeof kind##_names / sizeof *kind##_names; i++)                \
            if (kind##_names[i].handle == handle) return kind##_names[i].name;                   \
        return NULL;                                                                             \
    }                                                                                            \
    static int number_of_##kind(Handle handle) {                                                 \
        for (int i = 0; i < MOST_OBJECTS; i++)                                                   \
            if (live_##kind##s[i].number && live_##kind##s[i].handle == handle)                  \
                return live_##kind##s[i].number;                                                 \
        return 0;                                                                                \
    }                                                                                            \
    static void made_##kind(Handle handle) {                                                     \
        int i = 0, known = number_of_##kind(handle);                                             \
        if (name_of_##kind(handle)) return;                                                      \
        while (i < MOST_OBJECTS && live_##kind##s[i].number != known) i++;                       \
        if (i == MOST_OBJECTS) { fprintf(stderr, "record.h: MOST_OBJECTS is too small\n"); exit(9); } \
        if (known) { live_##kind##s[i].holders++; return; }                                      \
        live_##kind##s[i].handle = handle;                                                       \
        live_##kind##s[i].number = ++last_number;                                                \
        live_##kind##s[i].holders = 1;                                                           \
    }                                                                                            \
    static void freed_##kind(int number) {                                                       \
        for (int i = 0; number && i < MOST_OBJECTS; i++)                                         \
            if (live_##kind##s[i].number == number && --live_##kind##s[i].holders == 0)          \
                live_##kind##s[i].number = 0;                                                    \
    }                                                                                            \
    static void put_##kind(Handle handle) {                                                      \
        const char *name = name_of_##kind(handle);                                               \
        if (name) fprintf(log_file, "\"%s\"", name);                                             \
        else fprintf(log_file, "\"" #kind ":%d\"", number_of_##kind(handle));                    \
    }
#define NAMED(handle) {handle, #handle}
DEFINE_OBJECTS(comm, MPI_Comm, NAMED(MPI_COMM_NULL), {MPI_COMM_WORLD, "world"}, {MPI_COMM_SELF, "self"})
DEFINE_OBJECTS(group, MPI_Group, NAMED(MPI_GROUP_NULL), NAMED(MPI_GROUP_EMPTY))
DEFINE_OBJECTS(type, MPI_Datatype, NAMED(MPI_DATATYPE_NULL), NAMED(MPI_BYTE), NAMED(MPI_CHAR), NAMED(MPI_INT),
               NAMED(MPI_LONG), NAMED(MPI_DOUBLE), NAMED(MPI_FLOAT), NAMED(MPI_PACKED), NAMED(MPI_INT64_T),
               NAMED(MPI_DOUBLE_INT), NAMED(MPI_2INT), NAMED(MPI_UNSIGNED_SHORT))
DEFINE_OBJECTS(op, MPI_Op, NAMED(MPI_OP_NULL), NAMED(MPI_SUM), NAMED(MPI_MAX), NAMED(MPI_MIN),
               NAMED(MPI_PROD), NAMED(MPI_MAXLOC), NAMED(MPI_BOR), NAMED(MPI_REPLACE), NAMED(MPI_NO_OP))
DEFINE_OBJECTS(info, MPI_Info, NAMED(MPI_INFO_NULL), NAMED(MPI_INFO_ENV))
DEFINE_OBJECTS(errhandler, MPI_Errhandler, NAMED(MPI_ERRHANDLER_NULL), NAMED(MPI_ERRORS_ARE_FATAL),
               NAMED(MPI_ERRORS_RETURN))
DEFINE_OBJECTS(file, MPI_File, NAMED(MPI_FILE_NULL))
DEFINE_OBJECTS(win, MPI_Win, NAMED(MPI_WIN_NULL))
DEFINE_OBJECTS(message, MPI_Message, NAMED(MPI_MESSAGE_NULL), NAMED(MPI_MESSAGE_NO_PROC))
#if MPI_VERSION >= 4
DEFINE_OBJECTS(session, MPI_Session, NAMED(MPI_SESSION_NULL))
#endif

static int new_number(void) { return ++last_number; }

/* Two live requests that MPI gave one handle: nobody who sees handles can tell them apart. */
static void shared_requests(int one, int other) {
    fprintf(log_file, "{\"shared\":[\"request:%d\",\"request:%d\"]}\n", one, other);
}

/* ---- values ------------------------------------------------------------------------------- */

static void put_rank(int rank) {
    if (rank == MPI_ANY_SOURCE) fputs("\"MPI_ANY_SOURCE\"", log_file);
    else if (rank == MPI_PROC_NULL) fputs("\"MPI_PROC_NULL\"", log_file);
    else if (rank == MPI_ROOT) fputs("\"MPI_ROOT\"", log_file);
    else if (rank == MPI_UNDEFINED) fputs("\"MPI_UNDEFINED\"", log_file);
    else fprintf(log_file, "%d", rank);
}

static void put_tag(int tag) {
    if (tag == MPI_ANY_TAG) fputs("\"MPI_ANY_TAG\"", log_file);
    else fprintf(log_file, "%d", tag);
}

static void put_buffer(const void *buffer) {
    if (buffer == MPI_IN_PLACE) fputs("\"MPI_IN_PLACE\"", log_file);
    else if (buffer == MPI_BOTTOM) fputs("\"MPI_BOTTOM\"", log_file);
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
        case 'a': fprintf(log_file, "\"0x%lx\"", (unsigned long)va_arg(values, const void *)); break;
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
