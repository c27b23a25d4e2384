/*
 * The API where it can do nothing, or should not be: before MPI_Init, after MPI_Finalize, in children, on
 * threads without MPI, unbalanced, with odd arguments. Prints the same with and without ampl.
 */
#define _POSIX_C_SOURCE 200809L
#include <ampl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void everything(void)
{
    int step = ampl_region_register("STEP"), work = ampl_metric_register("work");
    for (int i = 0; i < 10; i++) {
        ampl_region_enter(step);
        ampl_region_begin("INNER");
        ampl_metric_add(work, 1);
        ampl_marker();
        ampl_region_end("INNER");
        ampl_region_exit(step);
        ampl_is_traced();
        ampl_window();
    }
}

static void odd(void)
{
    char name[1000];
    ampl_region_begin(NULL);
    ampl_region_end(NULL);
    ampl_region_begin("");
    ampl_region_register(NULL);
    ampl_metric_register(NULL);
    ampl_region_enter(0);
    ampl_region_enter(-1);
    ampl_region_exit(2000000000);
    ampl_metric_add(-7, 1);
    ampl_metric_add(12345678, 1);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    ampl_region_begin(name);
    ampl_region_end(name);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "region %d", i);
        ampl_region_begin(name);
        ampl_region_end(name);
    }
    ampl_region_end("STEP");
    for (int i = 0; i < 100000; i++)
        ampl_region_begin("INNER");
    ampl_region_begin("STEP");
    ampl_region_begin("INNER");
    ampl_region_end("STEP");
}

static void *worker(void *end)
{
    everything();
    while (end && !*(volatile int *)end) {
        everything();
        sched_yield();
    }
    ampl_region_begin("STEP"); /* and never left */
    return NULL;
}

static void child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        everything();
        odd();
        _exit(ampl_is_traced() == -1 ? 7 : 8);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    printf("child: %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    volatile int end = 0;
    int provided, rank, sum = 0, one = 1;

    everything();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    everything();
    child();
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, worker, NULL);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        everything();
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
    odd();
    /* Threads that go on while MPI ends, and after. */
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)&end);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    everything();
    child();
    end = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("sum: %d, traced: %d, window: %ld\n", sum, ampl_is_traced(), ampl_window());
    return 0;
}
