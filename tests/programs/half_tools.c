/* Uses the interfaces of other tools as no tool should: null names, ends without beginnings, beginnings without ends, numbers
 * that nobody gave, tables with holes, names of any bytes and any length. Threads end inside of regions, and a forked child
 * goes on without MPI.
 *
 * Every rank prints `rank R: 3 turns`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char endless[70000];
static const char *const names[] = {NULL, "", "\xff\xfe\x80", "a\nb\t\x1b[2J", endless, "wild"};
enum { NAMES = sizeof names / sizeof *names };

static void *function(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

static void kokkos(void) {
    void (*begin)(const char *, uint32_t, uint64_t *) = function("kokkosp_begin_parallel_for");
    void (*end)(uint64_t) = function("kokkosp_end_parallel_for");
    void (*push)(const char *) = function("kokkosp_push_profile_region");
    void (*pop)(void) = function("kokkosp_pop_profile_region");
    void (*make)(const char *, uint32_t *) = function("kokkosp_create_profile_section");
    void (*start)(uint32_t) = function("kokkosp_start_profile_section");
    void (*stop)(uint32_t) = function("kokkosp_stop_profile_section");
    void (*settings)(uint32_t, void *) = function("kokkosp_request_tool_settings");
    if (!begin || !end || !push || !pop || !make || !start || !stop || !settings) return;
    for (int at = 0; at < NAMES; at++) {
        uint64_t id = 77;
        uint32_t section = 77;
        pop();
        begin(names[at], 0, &id), begin(names[at], 0, NULL);
        end(id), end(id + 12345), end(UINT64_MAX);
        push(names[at]), push(names[at]);
        make(names[at], &section), make(names[at], NULL);
        start(section), start(UINT32_MAX), stop(section), stop(UINT32_MAX), stop(1);
    }
    settings(1, NULL);
    for (int at = 0; at < 40; at++) pop();
}

static void perfstubs(void) {
    void *(*create)(const char *) = function("ps_tool_timer_create");
    void (*start)(const void *) = function("ps_tool_timer_start");
    void (*stop)(const void *) = function("ps_tool_timer_stop");
    void (*start_string)(const char *) = function("ps_tool_start_string");
    void (*stop_string)(const char *) = function("ps_tool_stop_string");
    void *(*counter)(const char *) = function("ps_tool_create_counter");
    void (*sample)(const void *, double) = function("ps_tool_sample_counter");
    if (!create || !start || !stop || !start_string || !stop_string || !counter || !sample) return;
    const double values[] = {NAN, INFINITY, -INFINITY, 1e308, -0.0};
    for (int at = 0; at < NAMES; at++) {
        void *timer = create(names[at]), *samples = counter(names[at]);
        stop(timer), start(timer), start(NULL), stop((void *)-1), start((void *)99999);
        stop_string(names[at]), start_string(names[at]);
        for (int value = 0; value < 5; value++) sample(samples, values[value]), sample((void *)-1, 1);
    }
}

static int has_nothing(uint32_t module, void *table, uint32_t *size) {
    (void)module, (void)table, (void)size;
    return 0;
}

static void *places[3], **holes[16];
static int has_holes(uint32_t module, void *table, uint32_t *size) {
    /* Fewer entries than there are functions, most of them null. */
    holes[9] = &places[0], holes[11] = &places[1], holes[4] = &places[2];
    *(void ****)table = holes;
    *size = module == 1 ? 12 : 5;
    return 1;
}

static struct { size_t size; void *get; } table;
static const void *no_table(uint32_t id) { return (void)id, NULL; }
static const void *a_table(uint32_t id) { return (void)id, &table; }

static void nvtx(void) {
    int (*begin)(const void *(*)(uint32_t)) = function("InitializeInjectionNvtx2");
    if (!begin) return;
    begin(NULL), begin(no_table);
    table.size = 1, begin(a_table);
    table.size = sizeof table, begin(a_table);
    table.get = has_nothing, begin(a_table);
    table.get = has_holes;
    if (!begin(a_table) || !places[0] || !places[1]) return;
    int (*push)(const char *) = places[0], (*pop)(void) = places[1];
    int (*push_in)(void *, void *) = places[2];
    for (int at = 0; at < NAMES; at++) pop(), push(names[at]), push(names[at]);
    push_in(NULL, NULL);
    push_in((void *)-1, &(int[16]){3});
}

static void itt(void) {
    void (*begin)(void *, int) = function("__itt_api_init");
    static char wrong[4096];
    if (begin) begin(NULL, 0), begin(wrong, -1);
}

static void caliper(void) {
    void (*begin)(const char *) = function("cali_begin_region"), (*end)(const char *) = function("cali_end_region");
    if (!begin || !end) return;
    for (int at = 0; at < NAMES; at++) end(names[at]), begin(names[at]);
}

static void functions(void) {
    void (*enter)(void *, void *) = function("__cyg_profile_func_enter");
    void (*leave)(void *, void *) = function("__cyg_profile_func_exit");
    if (!enter || !leave) return;
    leave(NULL, NULL), enter(NULL, NULL), enter((void *)-1, NULL), enter((void *)functions, NULL);
    for (int at = 0; at < 5000; at++) enter((char *)functions + at, NULL);
}

static void *dies(void *unused) {
    kokkos(), nvtx(), perfstubs(), functions();
    pthread_exit(unused);
}

int main(int argc, char **argv) {
    int rank;
    memset(endless, 'x', sizeof endless - 1);
    kokkos(), perfstubs(), nvtx(), itt(), caliper(), functions();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 3; turn++) {
        pthread_t thread;
        kokkos(), perfstubs(), nvtx(), itt(), caliper(), functions();
        pthread_create(&thread, NULL, dies, NULL);
        pthread_join(thread, NULL);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            kokkos(), perfstubs(), nvtx(), functions();
            exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status) printf("the child ended with %d\n", status);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("rank %d: 3 turns\n", rank);
    fflush(stdout);
    MPI_Finalize();
    kokkos(), perfstubs(), nvtx(), functions();
    return 0;
}
