/* Communicators whose order or parts the library chooses, and of which the program asks nothing by a name that a tool
 * sees; made and freed in callbacks, in pauses, and in MPI_Finalize, too.
 *
 * usage: comm_unasked LOG [SECONDS]   writes a line for each communicator that it makes to LOG.<rank>: a number that all
 * of it share and no other has, and who is in it, by ranks in MPI_COMM_WORLD. With SECONDS it first asks for messages
 * for so long, which is too often for a tool.
 * Runs on an even number of ranks from 4 on.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, numbered;
static FILE *log_file;

static void say(MPI_Comm comm) {
    MPI_Group group, world;
    int size, here[64], there[64], number = 1000 * rank + ++numbered;
    if (comm == MPI_COMM_NULL) return;
    PMPI_Bcast(&number, 1, MPI_INT, 0, comm);
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &size);
    for (int place = 0; place < size; place++) here[place] = place;
    PMPI_Group_translate_ranks(group, size, here, world, there);
    fprintf(log_file, "%d ", number);
    for (int place = 0; place < size; place++) fprintf(log_file, "%s%d", place ? "," : "", there[place]);
    fprintf(log_file, "\n");
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
}

static void use(MPI_Comm comm, int tag) {
    int out = 0, in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, tag, &in, 1, MPI_INT, MPI_PROC_NULL, tag, comm, MPI_STATUS_IGNORE);
}

static void topologies(void) {
    int dims[2] = {2, ranks / 2}, periods[2] = {0, 1}, keep[2] = {0, 1};
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, one = 1;
    int index[64], edges[128];
    MPI_Comm grid, row, graph, ring;
    /* Made again by the same handle and number, and not the same. */
    for (int turn = 0; turn < 3; turn++) {
        dims[0] = turn == 1 ? 1 : 2;
        dims[1] = ranks / 2;
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
        say(grid);
        if (grid == MPI_COMM_NULL) continue;
        use(grid, 1);
        MPI_Cart_sub(grid, keep, &row);
        say(row);
        MPI_Comm_free(&row);
        MPI_Comm_free(&grid);
    }
    for (int node = 0; node < ranks; node++) {
        index[node] = 2 * (node + 1);
        edges[2 * node] = (node + ranks - 1) % ranks;
        edges[2 * node + 1] = (node + 1) % ranks;
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 1, &graph);
    say(graph);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 1,
                                   &ring);
    say(ring);
    MPI_Comm_free(&ring);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &ring);
    say(ring);
    MPI_Comm_free(&ring);
}

static void parts(void) {
    MPI_Comm side, bridge, both, node, odd;
    int low = rank < ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &side);
    say(side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, low ? ranks / 2 : 0, 5, &bridge);
    for (int high = 0; high < 2; high++) {
        MPI_Intercomm_merge(bridge, high, &both);
        say(both);
        use(both, 2);
        MPI_Comm_free(&both);
    }
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&side);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node);
    say(node);
    MPI_Comm_split_type(node, rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &odd);
    say(odd);
    if (odd != MPI_COMM_NULL) MPI_Comm_free(&odd);
#ifdef OMPI_MAJOR_VERSION
    MPI_Comm_split_type(node, OMPI_COMM_TYPE_CORE, 0, MPI_INFO_NULL, &odd);
    say(odd);
    if (odd != MPI_COMM_NULL) MPI_Comm_free(&odd);
#else
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Comm_split_type(node, MPI_COMM_TYPE_HW_GUIDED, 0, info, &odd);
    say(odd);
    if (odd != MPI_COMM_NULL) MPI_Comm_free(&odd);
    MPI_Info_free(&info);
#endif
    MPI_Comm_free(&node);
}

static MPI_Comm inner;

static int copies(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra;
    MPI_Comm_dup(MPI_COMM_WORLD, &inner);
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int frees(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    if (inner != MPI_COMM_NULL) MPI_Comm_free(&inner);
    return MPI_SUCCESS;
}

static void within(int copying) {
    int key;
    MPI_Comm outer, copy, after;
    MPI_Comm_create_keyval(copying ? copies : MPI_COMM_NULL_COPY_FN, frees, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &outer);
    say(outer);
    MPI_Comm_dup(MPI_COMM_WORLD, &inner);
    say(inner);
    MPI_Comm_set_attr(outer, key, &key);
    if (copying) {
        MPI_Comm_free(&inner);
        MPI_Comm_dup(outer, &copy); /* makes `inner` */
        say(copy);
        use(inner, 777);
        MPI_Comm_free(&copy); /* frees it, and `outer` finds none */
    }
    MPI_Comm_free(&outer);
    /* What is made by its handle is another. */
    MPI_Comm_dup(MPI_COMM_SELF, &after);
    say(after);
    use(after, 3);
    MPI_Comm_free(&after);
    MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv) {
    char name[4096];
    int key;
    MPI_Comm first, paused, later;
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, "%s.%d", argc > 1 ? argv[1] : "log", rank);
    log_file = fopen(name, "w");
    if (!log_file) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &first);
    say(first);
    for (double end = MPI_Wtime() + (argc > 2 ? atof(argv[2]) : 0); MPI_Wtime() < end;) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    topologies();
    MPI_Pcontrol(0);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &paused);
    say(paused);
    use(paused, 4);
    MPI_Pcontrol(1);
    MPI_Comm_dup(paused, &later);
    say(later);
    use(later, 5);
    MPI_Comm_free(&later);
    MPI_Comm_free(&paused);
    parts();
    within(0);
    within(1);
    /* Freed in MPI_Finalize. */
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &inner);
    say(inner);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
    MPI_Comm_free(&first);
    fclose(log_file);
    MPI_Finalize();
    return 0;
}
