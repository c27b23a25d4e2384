/* Windows and files, each call logged.
 *
 * usage: objects_shared [LOG]   writes its calls and then its counts to LOG.<rank>; prints results.
 * Runs on 1 to 4 ranks; its file objects_shared.dat goes into the working directory and is deleted.
 */
#include "call.h"

#define WORLD MPI_COMM_WORLD
#define CELLS 16

static int left, right, mine[CELLS], other[CELLS];

/* ---- windows ------------------------------------------------------------------------------- */

#define MOVED "origin_addr:b origin_count:i origin_datatype:t target_rank:r target_disp:j target_count:i " \
              "target_datatype:t"
#define CREATED "base:b size:j disp_unit:i info:n comm:c >win:w"

static void fence(MPI_Win win) { CALL(MPI_Win_fence, "assert:i win:w", 0, win); }
static void free_win(MPI_Win *win) { CALL(MPI_Win_free, "~win:w", win); }

static void active(void) {
    static int memory[CELLS];
    MPI_Win win;
    MPI_Group all, near;
    MPI_Aint one = 1, two = 2;
    int sum[2] = {0, 0}, value = 7, before = 0, flag = 0, expected = 0, wanted = 9, around[2] = {left, right};
    CALL(MPI_Win_create, CREATED, memory, (MPI_Aint)sizeof memory, 4, MPI_INFO_NULL, WORLD, &win);
    fence(win);
    CALL(MPI_Put, MOVED " win:w", mine, 2, MPI_INT, right, one, 2, MPI_INT, win);
    CALL(MPI_Put, MOVED " win:w", mine, 1, MPI_INT, MPI_PROC_NULL, one, 1, MPI_INT, win);
    fence(win);
    CALL(MPI_Get, MOVED " win:w", other, 2, MPI_INT, left, one, 2, MPI_INT, win);
    fence(win);
    CALL(MPI_Accumulate, MOVED " op:o win:w", mine, 2, MPI_INT, 0, two, 2, MPI_INT, MPI_SUM, win);
    fence(win);
    CALL(MPI_Get_accumulate, "origin_addr:b origin_count:i origin_datatype:t result_addr:b result_count:i "
         "result_datatype:t target_rank:r target_disp:j target_count:i target_datatype:t op:o win:w", mine, 0,
         MPI_INT, sum, 1, MPI_INT, 0, two, 1, MPI_INT, MPI_NO_OP, win);
    fence(win);
    CALL(MPI_Fetch_and_op, "origin_addr:b result_addr:b datatype:t target_rank:r target_disp:j op:o win:w",
         &value, &before, MPI_INT, rank, (MPI_Aint)8, MPI_REPLACE, win);
    fence(win);
    CALL(MPI_Compare_and_swap, "origin_addr:b compare_addr:b result_addr:b datatype:t target_rank:r "
         "target_disp:j win:w", &wanted, &value, &expected, MPI_INT, rank, (MPI_Aint)8, win);
    fence(win);
    RESULT("moved", other[0], other[1], sum[0], before, expected, memory[8]);
    CALL(MPI_Win_get_group, "win:w >group:p", win, &all);
    CALL(MPI_Group_incl, "group:p n:i ranks:r(n) >newgroup:p", all, left == right ? 1 : 2, around, &near);
    CALL(MPI_Win_post, "group:p assert:i win:w", near, 0, win);
    CALL(MPI_Win_start, "group:p assert:i win:w", near, 0, win);
    CALL(MPI_Put, MOVED " win:w", mine, 1, MPI_INT, right, (MPI_Aint)9, 1, MPI_INT, win);
    CALL(MPI_Win_complete, "win:w", win);
    CALL(MPI_Win_wait, "win:w", win);
    CALL(MPI_Win_post, "group:p assert:i win:w", near, 0, win);
    CALL(MPI_Win_start, "group:p assert:i win:w", near, 0, win);
    CALL(MPI_Win_complete, "win:w", win);
    do CALL(MPI_Win_test, "win:w >flag:l", win, &flag);
    while (!flag);
    RESULT("posted", memory[9], flag);
    CALL(MPI_Group_free, "~group:p", &near);
    CALL(MPI_Group_free, "~group:p", &all);
    free_win(&win);
}

static void passive(void) {
    MPI_Request requests[3];
    MPI_Win win;
    MPI_Aint bytes;
    int *memory, *theirs, unit, fetched = 0;
    CALL(MPI_Win_allocate, "size:j disp_unit:i info:n comm:c >baseptr:a >win:w", (MPI_Aint)64, 4,
         MPI_INFO_NULL, WORLD, &memory, &win);
    for (int i = 0; i < CELLS; i++) memory[i] = 0;
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_Win_lock, "lock_type:i rank:r assert:i win:w", MPI_LOCK_EXCLUSIVE, right, 0, win);
    CALL(MPI_Rput, MOVED " win:w >request:q", mine, 2, MPI_INT, right, (MPI_Aint)3, 2, MPI_INT, win,
         &requests[0]);
    CALL(MPI_Raccumulate, MOVED " op:o win:w >request:q", mine, 1, MPI_INT, right, (MPI_Aint)6, 1, MPI_INT,
         MPI_SUM, win, &requests[1]);
    CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 2, requests,
         MPI_STATUSES_IGNORE);
    CALL(MPI_Win_flush, "rank:r win:w", right, win);
    CALL(MPI_Rget, MOVED " win:w >request:q", &fetched, 1, MPI_INT, right, (MPI_Aint)4, 1, MPI_INT, win,
         &requests[2]);
    CALL(MPI_Wait, "~request:q >status:s", &requests[2], MPI_STATUS_IGNORE);
    CALL(MPI_Win_flush_local, "rank:r win:w", right, win);
    CALL(MPI_Win_unlock, "rank:r win:w", right, win);
    CALL(MPI_Win_lock_all, "assert:i win:w", MPI_MODE_NOCHECK, win);
    CALL(MPI_Rget_accumulate, "origin_addr:b origin_count:i origin_datatype:t result_addr:b result_count:i "
         "result_datatype:t target_rank:r target_disp:j target_count:i target_datatype:t op:o win:w "
         ">request:q", mine, 1, MPI_INT, other, 1, MPI_INT, rank, (MPI_Aint)10, 1, MPI_INT, MPI_SUM, win,
         &requests[0]);
    CALL(MPI_Wait, "~request:q >status:s", &requests[0], MPI_STATUS_IGNORE);
    CALL(MPI_Win_flush_all, "win:w", win);
    CALL(MPI_Win_flush_local_all, "win:w", win);
    CALL(MPI_Win_sync, "win:w", win);
    CALL(MPI_Win_unlock_all, "win:w", win);
    CALL(MPI_Barrier, "comm:c", WORLD);
    RESULT("locked", fetched, memory[3], memory[4], memory[6], memory[10]);
    free_win(&win);
    CALL(MPI_Win_allocate_shared, "size:j disp_unit:i info:n comm:c >baseptr:a >win:w", (MPI_Aint)8, 4,
         MPI_INFO_NULL, WORLD, &memory, &win);
    CALL(MPI_Win_shared_query, "win:w rank:r >size:j >disp_unit:i >baseptr:a", win, right, &bytes, &unit,
         &theirs);
    CALL(MPI_Win_shared_query, "win:w rank:r >size:j >disp_unit:i >baseptr:a", win, MPI_PROC_NULL, &bytes,
         &unit, &theirs);
    fence(win);
    RESULT("shared", bytes, unit);
    free_win(&win);
    CALL(MPI_Win_create_dynamic, "info:n comm:c >win:w", MPI_INFO_NULL, WORLD, &win);
    CALL(MPI_Win_attach, "win:w base:b size:j", win, mine, (MPI_Aint)sizeof mine);
    CALL(MPI_Win_detach, "win:w base:b", win, mine);
    free_win(&win);
}

static int calls;
static void handle_win(MPI_Win *win, int *code, ...) { (void)win, (void)code, calls++; }
static void handle_file(MPI_File *file, int *code, ...) { (void)file, (void)code, calls++; }
static int no_more(MPI_Win win, int key, void *value, void *extra) {
    return (void)win, (void)key, (void)value, *(int *)extra += 1, MPI_SUCCESS;
}

static void properties(void) {
    MPI_Win win;
    MPI_Info info;
    MPI_Errhandler ours, seen;
    char name[MPI_MAX_OBJECT_NAME];
    void *value;
    int key, length, flag, deleted = 0, code, *model;
    CALL(MPI_Win_create, CREATED, MPI_BOTTOM, (MPI_Aint)0, 1, MPI_INFO_NULL, WORLD, &win);
    CALL(MPI_Win_set_name, "win:w win_name:z", win, "nothing in it");
    CALL(MPI_Win_get_name, "win:w >win_name:z >resultlen:i", win, name, &length);
    SAY(name);
    CALL(MPI_Win_create_keyval, "win_copy_attr_fn:a win_delete_attr_fn:a >win_keyval:i extra_state:a",
         MPI_WIN_NULL_COPY_FN, no_more, &key, &deleted);
    CALL(MPI_Win_set_attr, "win:w win_keyval:i attribute_val:a", win, key, mine);
    CALL(MPI_Win_get_attr, "win:w win_keyval:i >attribute_val:k >flag:l", win, key, &value, &flag);
    CALL(MPI_Win_get_attr, "win:w win_keyval:i >attribute_val:K >flag:l", win, MPI_WIN_MODEL, &model, &flag);
    CALL(MPI_Win_get_attr, "win:w win_keyval:i >attribute_val:k >flag:l", win, MPI_WIN_BASE, &value, &flag);
    CALL(MPI_Win_get_attr, "win:w win_keyval:i >attribute_val:W >flag:l", win, MPI_WIN_SIZE, &model, &flag);
    CALL(MPI_Win_get_attr, "win:w win_keyval:i >attribute_val:k >flag:l", win, key, &value, &flag);
    CALL(MPI_Win_delete_attr, "win:w win_keyval:i", win, key);
    CALL(MPI_Win_get_attr, "win:w win_keyval:i >attribute_val:k >flag:l", win, key, &model, &flag);
    CALL(MPI_Win_free_keyval, "~win_keyval:i", &key);
    RESULT("window", value == mine, flag, deleted, length);
    CALL(MPI_Win_get_info, "win:w >info_used:n", win, &info);
    CALL(MPI_Win_set_info, "win:w info:n", win, info);
    CALL(MPI_Info_free, "~info:n", &info);
    CALL(MPI_Win_create_errhandler, "win_errhandler_fn:a >errhandler:e", handle_win, &ours);
    CALL(MPI_Win_set_errhandler, "win:w errhandler:e", win, ours);
    CALL(MPI_Win_get_errhandler, "win:w >errhandler:e", win, &seen);
    CALL(MPI_Errhandler_free, "~errhandler:e", &seen);
    CALL(MPI_Win_call_errhandler, "win:w errorcode:i", win, MPI_ERR_OTHER);
    CALL(MPI_Win_set_errhandler, "win:w errhandler:e", win, MPI_ERRORS_RETURN);
    CALL(MPI_Errhandler_free, "~errhandler:e", &ours);
    fence(win);
    code = CALL(MPI_Put, MOVED " win:w", mine, 1, MPI_INT, ranks + 9, (MPI_Aint)0, 1, MPI_INT, win);
    fence(win);
    RESULT("window's errors", calls, code != MPI_SUCCESS);
    free_win(&win);
}

/* ---- files --------------------------------------------------------------------------------- */

#define THERE "fh:f buf:b count:i datatype:t"
#define AT "fh:f offset:j buf:b count:i datatype:t"
#define FILE_NAME "objects_shared.dat"

static void wait_for(MPI_Request *request) {
    CALL(MPI_Wait, "~request:q >status:s", request, MPI_STATUS_IGNORE);
}

static void by_offset(MPI_File file) {
    MPI_Request request;
    MPI_Status status;
    MPI_Offset own = 4 * CELLS * rank, bytes;
    int count;
    CALL(MPI_File_write_at, AT " >status:-", file, own, mine, 4, MPI_INT, &status);
    CALL(MPI_Get_count, "status:? datatype:t >count:u", &status, MPI_INT, &count);
    CALL(MPI_File_write_at_all, AT " >status:-", file, own + 16, mine + 4, 4, MPI_INT, MPI_STATUS_IGNORE);
    CALL(MPI_File_iwrite_at, AT " >request:q", file, own + 32, mine + 8, 4, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_iwrite_at_all, AT " >request:q", file, own + 48, mine + 12, 4, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_sync, "fh:f", file);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_File_sync, "fh:f", file);
    CALL(MPI_File_get_size, "fh:f >size:j", file, &bytes);
    RESULT("written", count, bytes);
    CALL(MPI_File_read_at, AT " >status:-", file, (MPI_Offset)(4 * CELLS * right), other, 4, MPI_INT,
         &status);
    CALL(MPI_File_read_at_all, AT " >status:-", file, own, other + 4, 4, MPI_INT, MPI_STATUS_IGNORE);
    CALL(MPI_File_iread_at, AT " >request:q", file, own, other + 8, 4, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_read_at_all_begin, AT, file, own, other + 12, 4, MPI_INT);
    CALL(MPI_File_read_at_all_end, "fh:f buf:b >status:-", file, other + 12, &status);
    RESULT("read", other[0], other[7], other[11], other[15]);
}

static void by_pointer(MPI_File file) {
    MPI_Request request;
    MPI_Datatype etype, filetype, stripe, view;
    MPI_Offset place, byte, start;
    MPI_Aint extent;
    char how[MPI_MAX_DATAREP_STRING];
    CALL(MPI_Type_vector, "count:i blocklength:i stride:i oldtype:t >newtype:t", 2, 2, 4, MPI_INT, &stripe);
    CALL(MPI_Type_create_resized, "oldtype:t lb:j extent:j >newtype:t", stripe, (MPI_Aint)0, (MPI_Aint)32,
         &view);
    CALL(MPI_Type_commit, "~datatype:t", &view);
    CALL(MPI_File_set_view, "fh:f disp:j etype:t filetype:t datarep:z info:n", file, (MPI_Offset)(4 * CELLS *
         rank), MPI_INT, view, "native", MPI_INFO_NULL);
    CALL(MPI_File_get_view, "fh:f >disp:j >etype:t >filetype:? >datarep:z", file, &start, &etype, &filetype,
         how);
    CALL(MPI_File_get_type_extent, "fh:f datatype:t >extent:j", file, MPI_INT, &extent);
    CALL(MPI_File_write, THERE " >status:-", file, mine, 2, MPI_INT, MPI_STATUS_IGNORE);
    CALL(MPI_File_write_all, THERE " >status:-", file, mine + 2, 2, MPI_INT, MPI_STATUS_IGNORE);
    CALL(MPI_File_get_position, "fh:f >offset:j", file, &place);
    CALL(MPI_File_get_byte_offset, "fh:f offset:j >disp:j", file, place, &byte);
    CALL(MPI_File_seek, "fh:f offset:j whence:i", file, (MPI_Offset)-3, MPI_SEEK_CUR);
    CALL(MPI_File_read, THERE " >status:-", file, other, 1, MPI_INT, MPI_STATUS_IGNORE);
    CALL(MPI_File_read_all, THERE " >status:-", file, other + 1, 1, MPI_INT, MPI_STATUS_IGNORE);
    CALL(MPI_File_seek, "fh:f offset:j whence:i", file, (MPI_Offset)0, MPI_SEEK_SET);
    CALL(MPI_File_iread, THERE " >request:q", file, other + 2, 1, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_iwrite, THERE " >request:q", file, mine + 1, 1, MPI_INT, &request);
    wait_for(&request);
    CALL(MPI_File_write_all_begin, THERE, file, mine, 1, MPI_INT);
    CALL(MPI_File_write_all_end, "fh:f buf:b >status:-", file, mine, MPI_STATUS_IGNORE);
    SAY(how);
    RESULT("view", place, byte - start, extent, start, other[0], other[1], other[2]);
    CALL(MPI_File_set_view, "fh:f disp:j etype:t filetype:t datarep:z info:n", file, (MPI_Offset)0, MPI_BYTE,
         MPI_BYTE, "native", MPI_INFO_NULL);
    CALL(MPI_Type_free, "~datatype:t", &view);
    CALL(MPI_Type_free, "~datatype:t", &stripe);
}

static void together(MPI_File file) {
    MPI_Request request;
    MPI_Offset place;
    CALL(MPI_File_seek_shared, "fh:f offset:j whence:i", file, (MPI_Offset)0, MPI_SEEK_SET);
    CALL(MPI_File_write_shared, THERE " >status:-", file, mine, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_File_get_position_shared, "fh:f >offset:j", file, &place);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_File_write_ordered, THERE " >status:-", file, mine, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    CALL(MPI_File_seek_shared, "fh:f offset:j whence:i", file, (MPI_Offset)0, MPI_SEEK_SET);
    CALL(MPI_File_read_ordered, THERE " >status:-", file, other, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    CALL(MPI_File_read_ordered_begin, THERE, file, other, 4, MPI_BYTE);
    CALL(MPI_File_read_ordered_end, "fh:f buf:b >status:-", file, other, MPI_STATUS_IGNORE);
    CALL(MPI_File_read_shared, THERE " >status:-", file, other + 1, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    CALL(MPI_File_iread_shared, THERE " >request:q", file, other + 2, 1, MPI_BYTE, &request);
    wait_for(&request);
    RESULT("in order", place, other[0]);
}

static void files(void) {
    MPI_File file;
    MPI_Group all;
    MPI_Info info;
    MPI_Errhandler ours, seen;
    int mode, flag, size, code, class;
    CALL(MPI_Info_create, ">info:n", &info);
    CALL(MPI_Info_set, "info:n key:z value:z", info, "access_style", "read_once");
    CALL(MPI_File_open, "comm:c filename:z amode:i info:n >fh:f", WORLD, FILE_NAME, MPI_MODE_CREATE |
         MPI_MODE_RDWR, info, &file);
    CALL(MPI_File_set_info, "fh:f info:n", file, info);
    CALL(MPI_Info_free, "~info:n", &info);
    CALL(MPI_File_get_info, "fh:f >info_used:n", file, &info);
    CALL(MPI_Info_free, "~info:n", &info);
    CALL(MPI_File_get_amode, "fh:f >amode:i", file, &mode);
    CALL(MPI_File_get_group, "fh:f >group:p", file, &all);
    CALL(MPI_Group_size, "group:p >size:i", all, &size);
    CALL(MPI_Group_free, "~group:p", &all);
    CALL(MPI_File_set_size, "fh:f size:j", file, (MPI_Offset)8);
#ifndef OPEN_MPI  /* there the next collective call on the file may fail */
    CALL(MPI_File_preallocate, "fh:f size:j", file, (MPI_Offset)16);
#endif
    CALL(MPI_File_set_atomicity, "fh:f flag:l", file, 1);
    CALL(MPI_File_get_atomicity, "fh:f >flag:l", file, &flag);
    CALL(MPI_File_set_atomicity, "fh:f flag:l", file, 0);
    RESULT("file", mode == (MPI_MODE_CREATE | MPI_MODE_RDWR), size, flag);
    by_offset(file);
    by_pointer(file);
    together(file);
    CALL(MPI_File_create_errhandler, "file_errhandler_fn:a >errhandler:e", handle_file, &ours);
    CALL(MPI_File_set_errhandler, "file:f errhandler:e", file, ours);
    CALL(MPI_File_get_errhandler, "file:f >errhandler:e", file, &seen);
    CALL(MPI_Errhandler_free, "~errhandler:e", &seen);
    calls = 0;
    CALL(MPI_File_call_errhandler, "fh:f errorcode:i", file, MPI_ERR_OTHER);
    code = CALL(MPI_File_seek, "fh:f offset:j whence:i", file, (MPI_Offset)0, 12345);
    RESULT("file's errors", calls, code != MPI_SUCCESS);
    CALL(MPI_File_set_errhandler, "file:f errhandler:e", file, MPI_ERRORS_RETURN);
    CALL(MPI_Errhandler_free, "~errhandler:e", &ours);
    CALL(MPI_File_close, "~fh:f", &file);
    CALL(MPI_Barrier, "comm:c", WORLD);
    if (rank == 0) CALL(MPI_File_delete, "filename:z info:n", FILE_NAME, MPI_INFO_NULL);
    CALL(MPI_Barrier, "comm:c", WORLD);
    /* Nobody made it; files return errors unless told otherwise. */
    code = CALL(MPI_File_open, "comm:c filename:z amode:i info:n >fh:f", MPI_COMM_SELF, "not/here",
                MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CALL(MPI_Error_class, "errorcode:i >errorclass:i", code, &class);
    RESULT("no file", class == MPI_ERR_NO_SUCH_FILE);
    CALL(MPI_File_get_errhandler, "file:f >errhandler:e", MPI_FILE_NULL, &seen);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    left = (rank + ranks - 1) % ranks;
    right = (rank + 1) % ranks;
    for (int i = 0; i < CELLS; i++) mine[i] = 100 * rank + i;
    active();
    passive();
    properties();
    files();
    return end();
}
