/* Calls that fail, each logged: what they were given, and what MPI has written in spite of the error.
 *
 * usage: objects_errors [LOG]   writes its calls and then its counts to LOG.<rank>; prints results.
 * Runs on 1 to 4 ranks.
 */
#include "call.h"

#define WORLD MPI_COMM_WORLD
#define SELF MPI_COMM_SELF
static int *volatile nowhere = (int *)8;  /* nobody can read there */

static int class_of(int code) {
    int class;
    CALL(MPI_Error_class, "errorcode:i >errorclass:i", code, &class);
    return class;
}

/* ---- calls that MPI refuses ---------------------------------------------------------------- */

static void texts(void) {
    MPI_File file;
    MPI_Info info;
    int code;
    code = CALL(MPI_File_open, "comm:c filename:z amode:i info:n >fh:f", SELF, "no such directory/a \"file\"",
                MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    RESULT("no file", class_of(code) == MPI_ERR_NO_SUCH_FILE);
    CALL(MPI_File_delete, "filename:z info:n", "no such directory/file", MPI_INFO_NULL);
    CALL(MPI_Info_create, ">info:n", &info);
    code = CALL(MPI_Info_delete, "info:n key:z", info, "colour");
    RESULT("no key", class_of(code) == MPI_ERR_INFO_NOKEY);
    CALL(MPI_Info_set, "info:n key:z value:z", info, "", "nothing");
    CALL(MPI_Info_free, "~info:n", &info);
}

static void arrays(void) {
    MPI_Group all, some;
    MPI_Comm line;
    MPI_Datatype type;
    int wrong[3] = {0, ranks + 7, 1}, lengths[2] = {1, -2}, places[4] = {5, 6, 7, 8}, counts[4] = {1, 1, 1, 1};
    int dims[1] = {ranks}, periods[1] = {0}, far[1] = {ranks + 3}, mine = rank, all_of[8], spot, code;
    CALL(MPI_Comm_group, "comm:c >group:p", WORLD, &all);
    code = CALL(MPI_Group_incl, "group:p n:i ranks:r(n) >newgroup:p", all, 3, wrong, &some);
    RESULT("no such rank", class_of(code) == MPI_ERR_RANK);
    CALL(MPI_Group_incl, "group:p n:i ranks:- >newgroup:p", MPI_GROUP_NULL, 3, nowhere, &some);
    CALL(MPI_Group_free, "~group:p", &all);
    code = CALL(MPI_Type_indexed, "count:i array_of_blocklengths:i(count) array_of_displacements:i(count) "
                "oldtype:t >newtype:t", 2, lengths, places, MPI_INT, &type);
    RESULT("no type", code != MPI_SUCCESS);
    /* As long as a communicator, of which ampl knows that it is one. */
    CALL(MPI_Allgather, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c", &mine, 1,
         MPI_INT, all_of, 1, MPI_INT, WORLD);
    members = ranks;
    code = CALL(MPI_Allgatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) "
                "recvtype:t comm:c", &mine, 1, MPI_INT, all_of, counts, places, MPI_DATATYPE_NULL, WORLD);
    RESULT("gathered", class_of(code) == MPI_ERR_TYPE);
    CALL(MPI_Allgatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:- displs:- recvtype:t comm:c",
         &mine, 1, MPI_INT, all_of, counts, places, MPI_INT, MPI_COMM_NULL);
    CALL(MPI_Cart_create, "comm_old:c ndims:i dims:i(ndims) periods:l(ndims) reorder:l >comm_cart:c", WORLD,
         1, dims, periods, 0, &line);
    /* Nobody has asked for its size yet. */
    CALL(MPI_Cart_rank, "comm:c coords:- >rank:r", line, far, &spot);
    CALL(MPI_Bcast, "buffer:b count:i datatype:t root:r comm:c", &mine, 1, MPI_INT, 0, line);
    members = 1;
    code = CALL(MPI_Cart_rank, "comm:c coords:i(*) >rank:r", line, far, &spot);
    RESULT("beyond", code != MPI_SUCCESS);
    CALL(MPI_Comm_free, "~comm:c", &line);
}

/* ---- messages that are too long ------------------------------------------------------------ */

#define SENT "buf:b count:i datatype:t dest:r tag:g comm:c >request:q"
#define RECEIVED "buf:b count:i datatype:t source:r tag:g comm:c >request:v"
#define ONE "~request:q >status:s"

static int in[16], out[16];

/* Sent before: Open MPI cuts what a rank sends itself silently where the receive was there first. */
static MPI_Request incoming(int count, int tag) {
    MPI_Request request;
    CALL(MPI_Irecv, RECEIVED, in + tag % 4 * 4, count, MPI_INT, 0, tag, SELF, &request);
    return request;
}

static MPI_Request outgoing(int count, int tag) {
    MPI_Request request;
    CALL(MPI_Isend, SENT, out, count, MPI_INT, 0, tag, SELF, &request);
    return request;
}

static void done_with(MPI_Request *request) {
    if (*request != MPI_REQUEST_NULL) CALL(MPI_Wait, ONE, request, MPI_STATUS_IGNORE);
}

/* A message of which nothing was expected to be so long. */
static MPI_Status blank(void) {
    MPI_Status status;
    memset(&status, 0x55, sizeof status);
    return status;
}

#define TOLD(status) (status).MPI_SOURCE, (status).MPI_TAG

static void single(int tag) {
    MPI_Request request, sent;
    MPI_Message message;
    MPI_Status status = blank();
    int code, index = -1, flag = 0;
    sent = outgoing(4, tag);
    request = incoming(1, tag);
    code = CALL(MPI_Wait, ONE, &request, &status);
    RESULT("MPI_Wait", class_of(code) == MPI_ERR_TRUNCATE, TOLD(status));
    done_with(&sent);
    sent = outgoing(4, tag);
    request = incoming(1, tag);
    code = CALL(MPI_Wait, ONE, &request, MPI_STATUS_IGNORE);
    done_with(&sent);
    sent = outgoing(4, tag);
    request = incoming(1, tag);
    status = blank();
    do code = CALL(MPI_Test, "~request:q >flag:l >status:s", &request, &flag, &status);
    while (code == MPI_SUCCESS && !flag);
    RESULT("MPI_Test", class_of(code) == MPI_ERR_TRUNCATE, flag, TOLD(status));
    done_with(&sent);
    sent = outgoing(4, tag);
    request = incoming(1, tag);
    status = blank();
    code = CALL(MPI_Waitany, "count:i ~array_of_requests:q(count) >index:x >status:s", 1, &request, &index,
                &status);
    RESULT("MPI_Waitany", class_of(code) == MPI_ERR_TRUNCATE, index, TOLD(status));
    done_with(&sent);
    sent = outgoing(4, tag);
    status = blank();
    code = CALL(MPI_Recv, "buf:b count:i datatype:t source:r tag:g comm:c >status:s", in, 1, MPI_INT,
                MPI_ANY_SOURCE, MPI_ANY_TAG, SELF, &status);
    RESULT("MPI_Recv", class_of(code) == MPI_ERR_TRUNCATE, TOLD(status));
    done_with(&sent);
    sent = outgoing(4, tag);
    CALL(MPI_Mprobe, "source:r tag:g comm:c >message:m >status:s", 0, tag, SELF, &message, &status);
    status = blank();
    code = CALL(MPI_Mrecv, "buf:b count:i datatype:t ~message:m >status:s", in, 1, MPI_INT, &message, &status);
    RESULT("MPI_Mrecv", class_of(code) == MPI_ERR_TRUNCATE, message == MPI_MESSAGE_NULL, TOLD(status));
    freed_message(number_of_message(message)); /* MPICH leaves the handle of what is gone */
    done_with(&sent);
    /* MPI may give the next message the handle of the one before. */
    sent = outgoing(4, tag);
    CALL(MPI_Mprobe, "source:r tag:g comm:c >message:m >status:s", 0, tag, SELF, &message, &status);
    CALL(MPI_Mrecv, "buf:b count:i datatype:t ~message:m >status:s", in, 4, MPI_INT, &message, &status);
    done_with(&sent);
    status = blank();
    code = CALL(MPI_Sendrecv, "sendbuf:b sendcount:i sendtype:t dest:r sendtag:g recvbuf:b recvcount:i "
                "recvtype:t source:r recvtag:g comm:c >status:s", out, 4, MPI_INT, 0, tag, in, 1, MPI_INT, 0, tag,
                SELF, &status);
    RESULT("MPI_Sendrecv", class_of(code) == MPI_ERR_TRUNCATE, TOLD(status));
    /* Errors of other kinds leave the status alone. */
    status = blank();
    code = CALL(MPI_Recv, "buf:b count:i datatype:t source:r tag:g comm:c >status:s", in, 1, MPI_INT, ranks + 9,
                tag, SELF, &status);
    RESULT("no source", class_of(code) == MPI_ERR_RANK);
}

/* One receive that is too short, one that is not, a send, and no request at all. */
static void several(int way, int ignored, int tag) {
    static const char *const NAMES[] = {"MPI_Waitall", "MPI_Waitsome", "MPI_Testall", "MPI_Testsome"};
    MPI_Request late = outgoing(2, tag + 1), sent = outgoing(4, tag);
    MPI_Request some[4] = {incoming(1, tag), incoming(4, tag + 1), MPI_REQUEST_NULL, sent};
    MPI_Status told[4] = {blank(), blank(), blank(), blank()};
    MPI_Status *statuses = ignored ? MPI_STATUSES_IGNORE : told;
    int code = MPI_SUCCESS, flag = 0, done = 0, indices[4];
    for (int i = 0; i < 1000 && code == MPI_SUCCESS && !flag; i++) {
        if (way == 0)
            code = CALL(MPI_Waitall, "count:i ~array_of_requests:q(count) >array_of_statuses:s(count)", 4, some,
                        statuses);
        else if (way == 1)
            code = CALL(MPI_Waitsome, "incount:i ~array_of_requests:q(incount) >outcount:u "
                        ">array_of_indices:x(outcount) >array_of_statuses:s(outcount)", 4, some, &done, indices,
                        statuses);
        else if (way == 2)
            code = CALL(MPI_Testall, "count:i ~array_of_requests:q(count) >flag:l >array_of_statuses:s(count)", 4,
                        some, &flag, statuses);
        else
            code = CALL(MPI_Testsome, "incount:i ~array_of_requests:q(incount) >outcount:u "
                        ">array_of_indices:x(outcount) >array_of_statuses:s(outcount)", 4, some, &done, indices,
                        statuses);
    }
    int left = 0;
    /* With statuses ignored MPICH 5 waits for the others too; ampl always wants to know them. */
    for (int i = 0; i < 4; i++) left += !ignored && some[i] != MPI_REQUEST_NULL;
    RESULT(NAMES[way], class_of(code) == MPI_ERR_IN_STATUS, left);
    for (int i = 0; i < 4; i++) done_with(&some[i]);
    done_with(&late);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", WORLD, MPI_ERRORS_RETURN);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", SELF, MPI_ERRORS_RETURN);
    texts();
    arrays();
    single(3);
    for (int way = 0; way < 4; way++)
        for (int ignored = 0; ignored < 2; ignored++) several(way, ignored, 10 + 2 * way);
    CALL(MPI_Pcontrol, "level:i", 0);
    PMPI_Barrier(WORLD);
    COUNTED(MPI_Comm_size, WORLD, &members);  /* in a pause */
    CALL(MPI_Pcontrol, "level:i", 1);
    CALL(MPI_Barrier, "comm:c", WORLD);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", WORLD, MPI_ERRORS_ARE_FATAL);
    return end();
}
