// A job whose time is lost to one planted cause: planted CAUSE STEPS. Computing is sleeping, so that it takes as long
// on a busy machine. Prints the share of a rank's time that it computed by its own clock.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double slept;

static void compute(double ms) {
    double begin = MPI_Wtime();
    struct timespec time = {0, (long)(ms * 1e6)};
    nanosleep(&time, NULL);
    slept += MPI_Wtime() - begin;
}

static void meet(void) {
    double one = 1, all;
    MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// The second half of the ranks is on a host of its own, as far as its name says.
static void name_host(void) {
    const char *number = getenv("OMPI_COMM_WORLD_RANK"), *all = getenv("OMPI_COMM_WORLD_SIZE");
    FILE *name;
    if (!number || !all || atoi(number) < atoi(all) / 2 || unshare(CLONE_NEWUTS) != 0)
        return;
    if ((name = fopen("/proc/sys/kernel/hostname", "w"))) {
        fputs("planted-two", name);
        fclose(name);
    }
}

// Rank 0 computes alone, and the others wait for what it sends.
static void alone(int rank, int *token) {
    for (int part = 0; part < 10; part++) {
        if (rank == 0)
            compute(100);
        MPI_Bcast(token, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static char from[1 << 20], into[1 << 22];

static void exchange(void) { MPI_Alltoall(from, 1 << 18, MPI_CHAR, into, 1 << 18, MPI_CHAR, MPI_COMM_WORLD); }

// Exchanges that take so long on the slowest rank, however quick the machine is.
static int exchanges_in(double seconds) {
    double begin, taken, most;
    exchange();
    begin = MPI_Wtime();
    for (int part = 0; part < 4; part++)
        exchange();
    taken = (MPI_Wtime() - begin) / 4;
    MPI_Allreduce(&taken, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most * 100 < seconds ? 100 : (int)(seconds / most) + 1;
}

int main(int argc, char **argv) {
    const char *cause = argv[1];
    if (!strcmp(cause, "host"))
        name_host();
    MPI_Init(&argc, &argv);
    int steps = atoi(argv[2]), rank, ranks, token = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File file = MPI_FILE_NULL;
    if (!strcmp(cause, "files"))
        MPI_File_open(MPI_COMM_WORLD, argv[3], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Win window = MPI_WIN_NULL;
    double *memory = NULL;
    if (!strcmp(cause, "window"))
        MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    int exchanges = strcmp(cause, "change") ? 0 : exchanges_in(0.016);
    double begin = MPI_Wtime();
    if (!strcmp(cause, "begin"))
        alone(rank, &token);
    for (int step = 0; step < steps; step++) {
        int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
        if (!strcmp(cause, "balanced")) {
            compute(20);
        } else if (!strcmp(cause, "begin") || !strcmp(cause, "end")) {
            compute(16);
        } else if (!strcmp(cause, "host")) {
            compute(rank < ranks / 2 ? 8 : 20);
        } else if (!strcmp(cause, "change")) {
            // In the second half most of the time goes into exchanging.
            compute(step < steps / 2 ? 16 : 4);
            for (int part = 0; part < exchanges && step >= steps / 2; part++)
                exchange();
        } else if (!strcmp(cause, "growth")) {
            compute(2);
            int bytes = (int)((double)sizeof from / steps * step);
            MPI_Allgather(from, bytes, MPI_CHAR, into, bytes, MPI_CHAR, MPI_COMM_WORLD);
        } else if (!strcmp(cause, "bytes")) {
            compute(2);
            for (int part = 0; part < 4; part++)
                MPI_Sendrecv(from, sizeof from, MPI_CHAR, right, 2, into, sizeof from, MPI_CHAR, left, 2, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        } else if (!strcmp(cause, "messages")) {
            compute(1);
            for (int part = 0; part < 200; part++)
                MPI_Sendrecv(from, 8, MPI_CHAR, right, 2, into, 8, MPI_CHAR, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            // For three seconds, however fast they are.
            int over = MPI_Wtime() - begin > 3, any;
            MPI_Allreduce(&over, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            if (any)
                steps = step;
        } else if (!strcmp(cause, "window")) {
            // Any rank may come late to the fences.
            compute(2 + (rank * 7919 + step * 104729) % 97 * 0.2);
            MPI_Win_fence(0, window);
            MPI_Put(from, 8, MPI_CHAR, right, 0, 8, MPI_CHAR, window);
            MPI_Win_fence(0, window);
        } else if (!strcmp(cause, "slow")) {
            compute(rank == 2 ? 20 : 8);
        } else if (!strcmp(cause, "strata")) {
            // A quarter of the ranks computes most, a quarter least.
            compute(rank < ranks / 4 ? 80 : rank < 3 * ranks / 4 ? 48 : 24);
            int other = 0;
            MPI_Sendrecv(&token, 1, MPI_INT, right, 3, &other, 1, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (!strcmp(cause, "pipeline")) {
            if (rank > 0)
                MPI_Recv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(5);
            if (rank < ranks - 1)
                MPI_Send(&token, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);
        } else if (!strcmp(cause, "turns")) {
            // Another rank computes longest in each step, as long as the others over a few.
            compute(rank == step % ranks ? 24 : 6);
        } else if (!strcmp(cause, "sender")) {
            // Even ranks compute before they send, odd ones behind the receive.
            if (rank % 2 == 0)
                compute(12);
            if (rank % 2 == 0 && rank + 1 < ranks)
                MPI_Send(&token, 1, MPI_INT, rank + 1, 5, MPI_COMM_WORLD);
            if (rank % 2 == 1) {
                MPI_Recv(&token, 1, MPI_INT, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                compute(12);
            }
        } else if (!strcmp(cause, "master")) {
            // Rank 0 asks for results again and again.
            MPI_Status found;
            for (int done, of = 1; rank == 0 && of < ranks; of++) {
                for (done = 0; !done;)
                    MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &done, &found);
                MPI_Recv(&token, 1, MPI_INT, found.MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            if (rank > 0) {
                compute(16);
                MPI_Send(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
            }
        } else if (!strcmp(cause, "polls")) {
            // Rank 0 computes between messages for which each of the others asks again and again.
            compute(4);
            MPI_Request request;
            int done = 0;
            MPI_Irecv(&token, 1, MPI_INT, right, 9, MPI_COMM_WORLD, &request);
            for (double until = MPI_Wtime() + 0.016; MPI_Wtime() < until;)
                MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
            MPI_Send(&token, 1, MPI_INT, left, 9, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (!strcmp(cause, "files")) {
            static char block[1 << 16];
            compute(4);
            // Each part is asked for until it has taken its time, however fast the disk is.
            for (double until = MPI_Wtime() + 0.016; MPI_Wtime() < until;)
                MPI_File_write_at(file, (MPI_Offset)rank * sizeof block, block, sizeof block, MPI_BYTE, MPI_STATUS_IGNORE);
        }
        meet();
    }
    if (!strcmp(cause, "end"))
        alone(rank, &token);
    printf("computed %.4f\n", slept / (MPI_Wtime() - begin));
    fflush(stdout);
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    if (window != MPI_WIN_NULL)
        MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
