/* Communicators of every kind, made and freed in an order that differs between ranks.
 *
 * usage: communicators LOG   writes a line for each communicator that it makes to LOG.<rank>: a number that all of it
 * share and no other has, as MPI itself hands it round, and who is in it, by ranks in MPI_COMM_WORLD.
 * Runs on 6 ranks or more.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, numbered;
static FILE *log_file;

static void say_group(MPI_Group group) {
    MPI_Group world;
    int size, here[64], there[64];
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(group, &size);
    for (int place = 0; place < size; place++) here[place] = place;
    MPI_Group_translate_ranks(group, size, here, world, there);
    for (int place = 0; place < size; place++) fprintf(log_file, "%s%d", place ? "," : "", there[place]);
    MPI_Group_free(&world);
}

static int fresh(void) { return 1000 * rank + ++numbered; }

static void say_members(int (*members)(MPI_Comm, MPI_Group *), MPI_Comm comm) {
    MPI_Group group;
    members(comm, &group);
    say_group(group);
    MPI_Group_free(&group);
}

/* The first of them finds a number. */
static void say(MPI_Comm comm) {
    int number = fresh();
    if (comm == MPI_COMM_NULL) return;
    MPI_Bcast(&number, 1, MPI_INT, 0, comm);
    fprintf(log_file, "%d ", number);
    say_members(MPI_Comm_group, comm);
    fprintf(log_file, "\n");
}

/* The first of the lower of the two groups, which `low` is, finds it. */
static void say_between(MPI_Comm comm, MPI_Comm local, int low) {
    int number = fresh(), place;
    MPI_Comm_rank(local, &place);
    if (low) {
        MPI_Bcast(&number, 1, MPI_INT, 0, local);
        MPI_Bcast(&number, 1, MPI_INT, place == 0 ? MPI_ROOT : MPI_PROC_NULL, comm);
    } else {
        MPI_Bcast(&number, 1, MPI_INT, 0, comm);
    }
    fprintf(log_file, "%d ", number);
    say_members(MPI_Comm_group, comm);
    fprintf(log_file, " ");
    say_members(MPI_Comm_remote_group, comm);
    fprintf(log_file, "\n");
}

static void splits(void) {
    MPI_Comm half, third, none, node, copy;
    int place;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* backwards */
    say(half);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3 == 0 ? MPI_UNDEFINED : rank % 3, 0, &third);
    say(third);
    /* From here on free numbers differ from rank to rank. */
    if (third != MPI_COMM_NULL) MPI_Comm_free(&third);
    MPI_Comm_split_type(half, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &place);
    say(node);
    MPI_Comm_split_type(half, MPI_UNDEFINED, rank, MPI_INFO_NULL, &none);
    MPI_Comm_dup(node, &copy);
    say(copy);
    if (rank % 2) MPI_Comm_free(&half);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Comm again;
        MPI_Comm_dup(copy, &again);
        say(again);
        MPI_Comm_free(&again);
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&node);
    if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
}

static void later(void) {
    MPI_Comm one, two, alone;
    MPI_Request requests[2];
    MPI_Comm_idup(MPI_COMM_WORLD, &one, &requests[0]);
    MPI_Comm_idup(MPI_COMM_WORLD, &two, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    say(one);
    say(two);
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    say(alone);
    MPI_Comm_free(rank % 2 ? &one : &two);
    MPI_Comm_free(rank % 2 ? &two : &one);
    MPI_Comm_free(&alone);
}

static void groups(void) {
    MPI_Comm pair, few, rest;
    MPI_Group world, mine, others, some;
    int chosen[3] = {4, 1, 2}, range[3] = {ranks - 1, 0, -3};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    /* Disjoint groups of two at once, the higher rank first; the last rank of an odd number is left out. */
    int pair_of[2] = {(rank / 2) * 2 + 1, (rank / 2) * 2};
    int paired = pair_of[0] < ranks;
    MPI_Group_incl(world, paired ? 2 : 0, pair_of, &mine);
    MPI_Comm_create(MPI_COMM_WORLD, mine, &pair);
    say(pair);
    if (mine != MPI_GROUP_EMPTY) MPI_Group_free(&mine);
    /* Only their members call. */
    MPI_Group_incl(world, 3, chosen, &mine);
    if (rank == 1 || rank == 2 || rank == 4) {
        for (int turn = 0; turn < 2; turn++) {
            MPI_Comm_create_group(MPI_COMM_WORLD, mine, 7, &few);
            say(few);
            MPI_Comm_free(&few);
        }
    }
    MPI_Group_difference(world, mine, &others);
    MPI_Group_free(&mine);
    MPI_Group_range_incl(world, 1, &range, &mine);
    MPI_Group_intersection(mine, others, &some);
    MPI_Group_free(&mine);
    /* Ranges that descend, by steps that are constants of MPI where ranks are meant. */
    for (int step = 1; step <= 4; step++) {
        int down[1][3] = {{5, step == 4 ? 1 : 0, -step}};
        MPI_Group descending;
        MPI_Comm descent;
        MPI_Group_range_incl(world, 1, down, &descending);
        MPI_Comm_create(MPI_COMM_WORLD, descending, &descent);
        say(descent);
        if (descent != MPI_COMM_NULL) MPI_Comm_free(&descent);
        MPI_Group_free(&descending);
    }
    MPI_Comm_create(MPI_COMM_WORLD, others, &rest);
    say(rest);
    if (rest != MPI_COMM_NULL) MPI_Comm_free(&rest);
    MPI_Comm_create(MPI_COMM_WORLD, some, &rest);
    say(rest);
    if (rest != MPI_COMM_NULL) MPI_Comm_free(&rest);
    if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
    MPI_Group_free(&some);
    MPI_Group_free(&others);
    MPI_Group_free(&world);
}

static void grids(void) {
    MPI_Comm grid, row, column, point, ring;
    int dims[2] = {ranks / 2, 2}, periods[2] = {0, 1}, keep[2];
    int degrees = 1, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    if (grid != MPI_COMM_NULL) {
        int place;
        MPI_Comm_rank(grid, &place);
        say(grid);
        keep[0] = 0, keep[1] = 1;
        MPI_Cart_sub(grid, keep, &row);
        say(row);
        keep[0] = 1, keep[1] = 0;
        MPI_Cart_sub(grid, keep, &column);
        say(column);
        keep[0] = 0, keep[1] = 0;
        MPI_Cart_sub(column, keep, &point);
        say(point);
        if (point != MPI_COMM_NULL) MPI_Comm_free(&point); /* MPICH makes one for the first rank only */
        MPI_Comm_free(place % 2 ? &row : &column);
        MPI_Comm_free(place % 2 ? &column : &row);
        MPI_Comm_free(&grid);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degrees, &before, MPI_UNWEIGHTED, degrees, &next, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    say(ring);
    MPI_Comm_free(&ring);
}

/* The lower and the higher ranks, and one between the two. */
static void between(void) {
    MPI_Comm side, bridge, copy, low_first, high_first;
    int low = rank < ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &side);
    say(side);
    MPI_Intercomm_create(side, 1, MPI_COMM_WORLD, low ? ranks / 2 + 1 : 1, 9, &bridge);
    say_between(bridge, side, low);
    MPI_Comm_dup(bridge, &copy);
    say_between(copy, side, low);
    MPI_Intercomm_merge(copy, !low, &low_first);
    say(low_first);
    MPI_Intercomm_merge(bridge, low, &high_first);
    say(high_first);
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&high_first);
    MPI_Comm_free(&low_first);
    MPI_Comm_free(&side);
}

int main(int argc, char **argv) {
    char name[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, "%s.%d", argc > 1 ? argv[1] : "log", rank);
    log_file = fopen(name, "w");
    if (!log_file) MPI_Abort(MPI_COMM_WORLD, 1);
    splits();
    later();
    groups();
    grids();
    between();
    splits();
    fclose(log_file);
    MPI_Finalize();
    return 0;
}
