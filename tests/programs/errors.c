/* Wrong calls: which code comes back, which error handler is called how often and with what.
 *
 * usage: errors return | handler      MPI_ERRORS_RETURN, or handlers that count and write down
 *
 * Writes errors.<rank>: launchers may cut long output of several ranks into one another.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static FILE *out_file;
static struct { int calls, last_class, on_world, on_self; } seen;

static void handler(MPI_Comm *comm, int *code, ...) {
    int result;
    seen.calls++;
    MPI_Error_class(*code, &seen.last_class);
    MPI_Comm_compare(*comm, MPI_COMM_WORLD, &result);
    seen.on_world += result == MPI_IDENT;
    MPI_Comm_compare(*comm, MPI_COMM_SELF, &result);
    seen.on_self += result == MPI_IDENT;
}

static void window_handler(MPI_Win *win, int *code, ...) {
    (void)win;
    seen.calls++;
    MPI_Error_class(*code, &seen.last_class);
}

static void file_handler(MPI_File *file, int *code, ...) {
    (void)file;
    seen.calls++;
    MPI_Error_class(*code, &seen.last_class);
}

static void told(const char *what, int code) {
    int class = -1, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    if (strchr(text, '\n')) *strchr(text, '\n') = 0;
    fprintf(out_file, "rank %d %s: class %d, handled %d (%d, %d) as %d, %s\n", rank, what, class, seen.calls,
            seen.on_world, seen.on_self, seen.last_class, strchr(text, ',') ? "" : text);
    memset(&seen, 0, sizeof seen);
}

#define TRY(call) told(#call, call)

static void point_to_point(void) {
    int in[4] = {0}, out[4] = {1, 2, 3, 4}, flag, count, index, done, indices[2], number;
    MPI_Request request = MPI_REQUEST_NULL, two[2];
    MPI_Status status, statuses[2];
    MPI_Message message;
    TRY(MPI_Send(out, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD));
    TRY(MPI_Send(out, 1, MPI_INT, 0, -5, MPI_COMM_SELF));
    TRY(MPI_Send(out, -1, MPI_INT, 0, 1, MPI_COMM_SELF));
    TRY(MPI_Send(out, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_SELF));
    TRY(MPI_Send(out, 1, MPI_INT, 0, 1, MPI_COMM_NULL));
    TRY(MPI_Recv(in, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TRY(MPI_Isend(out, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD, &request));
    TRY(MPI_Irecv(in, -1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
    TRY(MPI_Send_init(out, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD, &request));
    TRY(MPI_Iprobe(ranks + 5, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    TRY(MPI_Sendrecv(out, 1, MPI_INT, 0, 1, in, -1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    /* Messages too long for what receives them: blocking, waited for in every way, ignored or not. */
    for (int ignored = 0; ignored < 2; ignored++) {
        MPI_Irecv(in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
        MPI_Send(out, 4, MPI_INT, 0, 3, MPI_COMM_SELF);
        TRY(MPI_Wait(&request, ignored ? MPI_STATUS_IGNORE : &status));
        MPI_Irecv(in, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &request);
        MPI_Send(out, 4, MPI_INT, 0, 4, MPI_COMM_SELF);
        for (flag = 0, number = 0; !flag && number == 0;)
            number = MPI_Test(&request, &flag, ignored ? MPI_STATUS_IGNORE : &status);
        told("MPI_Test", number);
        for (int way = 0; way < 3; way++) {
            MPI_Irecv(in, 4, MPI_INT, 0, 5, MPI_COMM_SELF, &two[0]);
            MPI_Irecv(in, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &two[1]);
            MPI_Send(out, 4, MPI_INT, 0, 6, MPI_COMM_SELF);
            MPI_Send(out, 2, MPI_INT, 0, 5, MPI_COMM_SELF);
            memset(statuses, 0, sizeof statuses);
            statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 77777;
            MPI_Status *where = ignored ? MPI_STATUSES_IGNORE : statuses;
            if (way == 0) TRY(MPI_Waitall(2, two, where));
            else if (way == 1) TRY(MPI_Waitsome(2, two, &done, indices, where));
            else TRY(MPI_Waitany(2, two, &index, ignored ? MPI_STATUS_IGNORE : statuses));
            for (int i = 0; i < 2; i++) {
                int class = -1;
                if (!ignored && statuses[i].MPI_ERROR != 77777)
                    MPI_Error_class(statuses[i].MPI_ERROR, &class);
                fprintf(out_file, "rank %d way %d, %d: class %d, request %s\n", rank, way, i, class,
                       two[i] == MPI_REQUEST_NULL ? "null" : "there");
                if (two[i] != MPI_REQUEST_NULL) told("MPI_Wait again", MPI_Wait(&two[i], MPI_STATUS_IGNORE));
            }
        }
        MPI_Isend(out, 4, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
        TRY(MPI_Recv(in, 1, MPI_INT, 0, 7, MPI_COMM_SELF, ignored ? MPI_STATUS_IGNORE : &status));
        told("MPI_Wait for the send", MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Isend(out, 4, MPI_INT, 0, 8, MPI_COMM_SELF, &request);
        MPI_Mprobe(0, 8, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
        TRY(MPI_Mrecv(in, 1, MPI_INT, &message, ignored ? MPI_STATUS_IGNORE : &status));
        told("MPI_Wait for the send", MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    TRY(MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_SELF, &status));
    TRY(MPI_Get_count(&status, MPI_INT, &count));
    fprintf(out_file, "rank %d: source %s, tag %s, count %d\n", rank,
            status.MPI_SOURCE == MPI_PROC_NULL ? "null" : "other",
            status.MPI_TAG == MPI_ANY_TAG ? "any" : "other", count);
}

static void collectives(void) {
    int one = 1, all[64];
    MPI_Comm comm;
    MPI_Op op = MPI_OP_NULL;
    TRY(MPI_Bcast(&one, 1, MPI_INT, ranks + 5, MPI_COMM_WORLD));
    TRY(MPI_Bcast(&one, -1, MPI_INT, 0, MPI_COMM_SELF));
    TRY(MPI_Reduce(&one, all, 1, MPI_INT, MPI_OP_NULL, 0, MPI_COMM_WORLD));
    TRY(MPI_Allreduce(&one, all, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    TRY(MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, -7, MPI_COMM_WORLD));
    TRY(MPI_Barrier(MPI_COMM_NULL));
    TRY(MPI_Comm_dup(MPI_COMM_NULL, &comm));
    TRY(MPI_Comm_split(MPI_COMM_SELF, -9, 0, &comm));
    TRY(MPI_Op_free(&op));
}

static void objects(void) {
    int size, flag, key = MPI_KEYVAL_INVALID;
    void *value;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL, made;
    MPI_Request request = MPI_REQUEST_NULL;
    TRY(MPI_Comm_size(MPI_COMM_NULL, &size));
    TRY(MPI_Comm_rank(MPI_COMM_NULL, &size));
    TRY(MPI_Comm_free(&comm));
    TRY(MPI_Group_size(MPI_GROUP_NULL, &size));
    TRY(MPI_Group_free(&group));
    TRY(MPI_Type_free(&type));
    TRY(MPI_Type_size(MPI_DATATYPE_NULL, &size));
    TRY(MPI_Type_contiguous(-1, MPI_INT, &made));
    TRY(MPI_Type_commit(&type));
    TRY(MPI_Request_free(&request));
    TRY(MPI_Cart_create(MPI_COMM_SELF, -1, NULL, NULL, 0, &comm));
    TRY(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
    TRY(MPI_Info_free(&(MPI_Info){MPI_INFO_NULL}));
}

static void windows_and_files(int handle) {
    int memory[4] = {0}, one = 1;
    MPI_Win win;
    MPI_File file;
    MPI_Errhandler on_win, on_file;
    MPI_Win_create_errhandler(window_handler, &on_win);
    MPI_File_create_errhandler(file_handler, &on_file);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, handle ? on_win : MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    TRY(MPI_Put(&one, 1, MPI_INT, ranks + 5, 0, 1, MPI_INT, win));
    TRY(MPI_Put(&one, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    if (handle) MPI_File_set_errhandler(MPI_FILE_NULL, on_file);
    TRY(MPI_File_open(MPI_COMM_SELF, "/no/such/directory/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    TRY(MPI_File_delete("/no/such/directory/file", MPI_INFO_NULL));
    if (handle) MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&on_win);
    MPI_Errhandler_free(&on_file);
}

int main(int argc, char **argv) {
    int handle = argc > 1 && !strcmp(argv[1], "handler");
    MPI_Errhandler own = MPI_ERRORS_RETURN;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char name[32];
    snprintf(name, sizeof name, "errors.%d", rank);
    out_file = fopen(name, "w");
    if (!out_file) MPI_Abort(MPI_COMM_WORLD, 9);
    setvbuf(out_file, NULL, _IOLBF, 0);
    if (handle) MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    point_to_point();
    collectives();
    objects();
    windows_and_files(handle);
    MPI_Errhandler now;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
    fprintf(out_file, "rank %d: the handler %s\n", rank, now == own ? "is the same" : "differs");
    fclose(out_file);
    if (now != MPI_ERRORS_RETURN) MPI_Errhandler_free(&now);
    if (handle) MPI_Errhandler_free(&own);
    MPI_Finalize();
    return 0;
}
