/* A program that is not linked with MPI, and what it may load.
 *
 * usage: dlopened PLUGIN     loads PLUGIN, which is linked with MPI, out of the global search order
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin) {
        fprintf(stderr, "dlopened: %s\n", argc == 2 ? dlerror() : "usage: dlopened PLUGIN");
        return 9;
    }
    int (*run)(void) = (int (*)(void))dlsym(plugin, "run");
    return run ? run() : 8;
}
