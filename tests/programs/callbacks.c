/* Functions of the program that MPI calls, and that ask MPI: callbacks.c [frees]. With an argument one frees a communicator. */
#include <mpi.h>
#include <stddef.h>

static void sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int at = 0; at < *length; at++)
        ((int *)inout)[at] += ((int *)in)[at] * bytes;
}

static int told(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 1);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int freed(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancelled(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static int ended(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)state;
    return MPI_Comm_free((MPI_Comm *)value);
}

int main(int argc, char **argv)
{
    (void)argv;
    MPI_Init(NULL, NULL);
    MPI_Op op;
    MPI_Op_create(sum, 1, &op);
    for (int turn = 0, own = 1, all; turn < 6; turn++) {
        MPI_Request request;
        MPI_Allreduce(&own, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
        MPI_Grequest_start(told, freed, cancelled, NULL, &request);
        MPI_Grequest_complete(request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Op_free(&op);
    if (argc > 1) {
        MPI_Comm kept, comm;
        int key;
        MPI_Comm_dup(MPI_COMM_WORLD, &kept);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ended, &key, NULL);
        MPI_Comm_set_attr(comm, key, &kept);
        MPI_Comm_free(&comm);
        MPI_Comm_free_keyval(&key);
    }
    MPI_Finalize();
    return 0;
}
