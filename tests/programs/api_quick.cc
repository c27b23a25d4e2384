// What a call of the API costs where nothing comes of it; and that objects leave their regions by exceptions.
#include <ampl.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>

static int calls;

/* What everything is compared with: an ordinary call that does next to nothing. */
__attribute__((noinline)) static void ordinary(int)
{
    asm volatile("" ::: "memory");
    calls++;
}

static void both(int region)
{
    ampl_region_enter(region);
    ampl_region_exit(region);
}

static void twice(int region)
{
    ordinary(region);
    ordinary(region);
}

/* Nanoseconds of a call. Short pieces: in the best of many nothing else had the processor. */
static double quickest(void (*two)(int), int region)
{
    const int times = 500;
    double best = 1e9;
    for (int piece = 0; piece < 4000; piece++) {
        auto from = std::chrono::steady_clock::now();
        for (int i = 0; i < times; i++) two(region);
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
        if (took.count() < best) best = took.count();
    }
    return best / (2.0 * times);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int step = ampl_region_register("STEP"), unnamed = ampl_region_register("OTHER");
    for (int i = 0; i < 10; i++) {
        try {
            ampl::Region outer(step);
            ampl::Region inner("INNER");
            throw i;
        } catch (int) {
        }
    }
    double call = quickest(twice, 0);
    double unwatched = quickest(both, unnamed) / call;
    double watched = quickest(both, ampl_region_register("INNER")) / call;
    // To standard error: it differs.
    std::fprintf(stderr, "ordinary calls per call: %.2f unnamed, %.2f watched\n", unwatched, watched);
    MPI_Finalize();
}
