/* A program without MPI that tries plug-ins until one loads; every answer of the loader is printed.
 *
 * usage: loads LACKING HALF GOOD
 *   LACKING   its MPI library is not there
 *   HALF      its MPI library is there, another library is not
 *   GOOD      linked with MPI: its `asks` is called, it is unloaded, loaded again, and its `run` is called
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void say(const char *what, void *handle) {
    const char *error = dlerror();
    printf("%s: %s, %s\n", what, handle ? "there" : "none", error ? error : "no error");
}

static void asks_for(const char *name) { say(name, dlsym(RTLD_DEFAULT, name)); }

static void *tries(void *path) {
    long refused = 0;
    for (int turn = 0; turn < 50; turn++) {
        void *handle = dlopen(path, turn % 2 ? RTLD_NOW : RTLD_LAZY);
        refused += !handle && dlerror();
    }
    return (void *)refused;
}

int main(int argc, char **argv) {
    if (argc != 4) return 9;
    char *lacking = argv[1], *half = argv[2], *good = argv[3];
    say("at the start", NULL);
    // Libraries of others, by their names: both are the C library's own.
    say("another library", dlopen("libresolv.so.2", RTLD_NOW));
    asks_for("MPI_Init");
    say("another library, lazily", dlopen("libanl.so.1", RTLD_LAZY));
    asks_for("PMPI_Init");
    int flags[] = {RTLD_NOW, RTLD_LAZY, RTLD_NOW | RTLD_GLOBAL, RTLD_LAZY | RTLD_NOLOAD, RTLD_NOW | RTLD_NODELETE};
    for (int at = 0; at < 5; at++) {
        say("lacking", dlopen(lacking, flags[at]));
        asks_for("MPI_Init");
        say("half", dlopen(half, flags[at]));
    }
    say("a missing file", dlopen("./no such library.so", RTLD_NOW));
    say("a missing MPI", dlopen("libmpi.so.77", RTLD_NOW));
    say("the program", dlopen(NULL, RTLD_LAZY));
    say("an empty name", dlopen("", RTLD_LAZY));
    say("no flags", dlopen(lacking, 0));
    say("no library", dlopen("/etc/passwd", RTLD_NOW));
    say("a directory", dlopen("/tmp", RTLD_NOW));
    say("another namespace", dlmopen(LM_ID_NEWLM, lacking, RTLD_NOW));
    say("this namespace", dlmopen(LM_ID_BASE, lacking, RTLD_NOW));
    asks_for("MPI_Get_version");
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, tries, at % 2 ? half : lacking);
    for (int at = 0; at < 4; at++) {
        void *refused;
        pthread_join(threads[at], &refused);
        printf("a thread was refused %ld times\n", (long)refused);
    }
    say("good, if it is there", dlopen(good, RTLD_LAZY | RTLD_NOLOAD));
    asks_for("MPI_Get_version");
    void *plugin = NULL;
    for (int turn = 0; turn < 2; turn++) {
        plugin = turn ? dlopen(good, RTLD_NOW) : dlmopen(LM_ID_BASE, good, RTLD_NOW);
        say("good", plugin);
        if (!plugin) return 8;
        int (*asks)(void) = (int (*)(void))dlsym(plugin, "asks");
        printf("MPI %d\n", asks());
        if (!turn) dlclose(plugin);
    }
    fflush(stdout);
    int (*run)(void) = (int (*)(void))dlsym(plugin, "run");
    return run();
}
