// Exceptions out of error handlers and callbacks, MPI calls before main and after it.
//
// usage: throw exceptions | destructor      writes throw.<rank>
//   exceptions   an error handler throws through MPI, from frames of any depth; MPI is called again
//   destructor   MPI_Finalize is called by the destructor of a global object
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace {

int rank, ranks;

/// Asks MPI before main and, once MPI is gone, after it.
struct Early {
    int initialized = -1, version = -1, subversion = -1;
    Early() {
        MPI_Initialized(&initialized);
        MPI_Get_version(&version, &subversion);
    }
    ~Early() {
        int finalized = -1;
        MPI_Finalized(&finalized);
        std::printf("rank %d: before main %d, version %s, after it %d\n", rank, initialized,
                    version >= 3 ? "known" : "unknown", finalized);
        std::fflush(stdout);
    }
} early;

struct Ending {
    bool wanted = false;
    ~Ending() {
        if (wanted) MPI_Finalize();
    }
} ending;

void thrower(MPI_Comm *, int *code, ...) {
    int error_class;
    MPI_Error_class(*code, &error_class);
    throw std::runtime_error(error_class == MPI_ERR_RANK ? "no such rank" : "another error");
}

/// Destroyed on the way: unwinding must reach every frame.
struct Witness {
    int &count;
    ~Witness() { count++; }
};

__attribute__((noinline)) void from_below(int depth, int &destroyed, int (*what)()) {
    Witness witness{destroyed};
    volatile char room[200];
    room[0] = room[199] = static_cast<char>(depth);
    if (depth > 0) from_below(depth - 1, destroyed, what);
    else what();
    room[1] = room[0];
}

int to_nobody() { return MPI_Send(&rank, 1, MPI_INT, ranks + 5, 1, MPI_COMM_WORLD); }

int reduced;
int together() { return MPI_Allreduce(&rank, &reduced, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }

void exceptions() {
    const int depths[] = {0, 1, 12, 3, 0, 40, 2, 7};
    int caught = 0, destroyed = 0, sum = 0;
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(thrower, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int left : depths)
        for (int entered : depths) {
            try {
                from_below(left, destroyed, to_nobody);
            } catch (const std::runtime_error &error) {
                caught += error.what() == std::string("no such rank");
            }
            from_below(entered, destroyed, together);
            sum += reduced;
        }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    std::printf("rank %d: caught %d, destroyed %d, sum %d\n", rank, caught, destroyed, sum);
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // Launchers may lose what is said last.
    if (!std::freopen(("throw." + std::to_string(rank)).c_str(), "w", stdout)) MPI_Abort(MPI_COMM_WORLD, 9);
    if (argc > 1 && !std::strcmp(argv[1], "exceptions")) exceptions();
    else if (argc > 1 && !std::strcmp(argv[1], "destructor")) {
        together();
        ending.wanted = true;
        return 0;
    } else MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Finalize();
    return 0;
}
