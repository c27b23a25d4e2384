/* Communicators, groups, topologies, infos, attributes and error handlers, each call logged.
 *
 * usage: objects_comm [LOG]   writes its calls and then its counts to LOG.<rank>; prints results.
 * Runs on 1 to 4 ranks.
 */
#include "call.h"

#define WORLD MPI_COMM_WORLD

static void free_comm(MPI_Comm *comm) { CALL(MPI_Comm_free, "~comm:c", comm); }
static void free_group(MPI_Group *group) { CALL(MPI_Group_free, "~group:p", group); }
static void free_info(MPI_Info *info) { CALL(MPI_Info_free, "~info:n", info); }

/* ---- communicators ------------------------------------------------------------------------- */

static void communicators(void) {
    MPI_Comm copy, same, later, node, few, parent;
    MPI_Group all;
    MPI_Request request;
    MPI_Info info;
    char name[MPI_MAX_OBJECT_NAME];
    int length, result, flag;
    CALL(MPI_Comm_dup, "comm:c >newcomm:c", WORLD, &copy);
    CALL(MPI_Comm_set_name, "comm:c comm_name:z", copy, "the \"copy\"");
    CALL(MPI_Comm_get_name, "comm:c >comm_name:z >resultlen:i", copy, name, &length);
    SAY(name);
    CALL(MPI_Comm_compare, "comm1:c comm2:c >result:i", WORLD, copy, &result);
    RESULT("congruent", result == MPI_CONGRUENT, length);
    CALL(MPI_Comm_get_name, "comm:c >comm_name:z >resultlen:i", MPI_COMM_SELF, name, &length);
    CALL(MPI_Info_create, ">info:n", &info);
    CALL(MPI_Info_set, "info:n key:z value:z", info, "purpose", "none");
    CALL(MPI_Comm_dup_with_info, "comm:c info:n >newcomm:c", copy, info, &same);
    CALL(MPI_Comm_set_info, "comm:c info:n", same, info);
    free_info(&info);
    CALL(MPI_Comm_get_info, "comm:c >info_used:n", same, &info);
    free_info(&info);
    CALL(MPI_Comm_test_inter, "comm:c >flag:l", same, &flag);
    CALL(MPI_Comm_idup, "comm:c >newcomm:c >request:q", same, &later, &request);
    CALL(MPI_Wait, "~request:q >status:s", &request, MPI_STATUS_IGNORE);
    if (!number_of_comm(later)) made_comm(later);
    CALL(MPI_Barrier, "comm:c", later);
    CALL(MPI_Comm_disconnect, "~comm:c", &later);
    CALL(MPI_Comm_split_type, "comm:c split_type:u key:i info:n >newcomm:c", same, MPI_COMM_TYPE_SHARED,
         -rank, MPI_INFO_NULL, &node);
    CALL(MPI_Comm_rank, "comm:c >rank:r", node, &result);
    RESULT("on the node", result, flag);
    free_comm(&node);
    CALL(MPI_Comm_split_type, "comm:c split_type:u key:i info:n >newcomm:c", same, MPI_UNDEFINED, 0,
         MPI_INFO_NULL, &node);
    /* Only the members call it. */
    CALL(MPI_Comm_group, "comm:c >group:p", same, &all);
    if (rank < 2) {
        MPI_Group some;
        int chosen[2] = {ranks > 1, 0};
        CALL(MPI_Group_incl, "group:p n:i ranks:r(n) >newgroup:p", all, ranks > 1 ? 2 : 1, chosen, &some);
        CALL(MPI_Comm_create_group, "comm:c group:p tag:g >newcomm:c", same, some, 77, &few);
        CALL(MPI_Comm_rank, "comm:c >rank:r", few, &result);
        RESULT("of few", result);
        free_comm(&few);
        free_group(&some);
    }
    free_group(&all);
    CALL(MPI_Comm_get_parent, ">parent:c", &parent);
    free_comm(&same);
    free_comm(&copy);
}

/* Two halves that talk to each other: even and odd ranks. */
static void intercommunicators(void) {
    MPI_Comm half, between, merged;
    MPI_Group others;
    MPI_Request request;
    int flag, size, position, mine = rank + 1, *all = calloc(4 * ranks, sizeof(int));
    int counts[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3}, peers, members_there;
    if (ranks < 2) return free(all);
    CALL(MPI_Comm_split, "comm:c color:u key:i >newcomm:c", WORLD, rank % 2, rank, &half);
    CALL(MPI_Intercomm_create, "local_comm:c local_leader:r peer_comm:c remote_leader:r tag:g "
         ">newintercomm:c", half, 0, WORLD, 1 - rank % 2, 5, &between);
    CALL(MPI_Comm_test_inter, "comm:c >flag:l", between, &flag);
    CALL(MPI_Comm_remote_size, "comm:c >size:i", between, &peers);
    CALL(MPI_Comm_size, "comm:c >size:i", between, &size);
    CALL(MPI_Comm_remote_group, "comm:c >group:p", between, &others);
    CALL(MPI_Group_size, "group:p >size:i", others, &members_there);
    free_group(&others);
    RESULT("between", flag, peers, size, members_there);
    CALL(MPI_Allreduce, "sendbuf:b recvbuf:b count:i datatype:t op:o comm:c", &mine, all, 1, MPI_INT, MPI_SUM,
         between);
    /* The first of the even ranks is the root; its group's others take no part. */
    int root = rank == 0 ? MPI_ROOT : rank % 2 == 0 ? MPI_PROC_NULL : 0;
    CALL(MPI_Bcast, "buffer:b count:i datatype:t root:r comm:c", all, 1, MPI_INT, root, between);
    members = rank == 0 ? peers : -1;
    CALL(MPI_Gatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) recvtype:t "
         "root:r comm:c", &mine, rank % 2, MPI_INT, all, counts, places, MPI_INT, root, between);
    RESULT("gathered", all[0], all[1]);
    members = peers;
    CALL(MPI_Allgatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) recvtype:t "
         "comm:c", &mine, 1, MPI_INT, all, counts, places, MPI_INT, between);
    CALL(MPI_Ialltoallv, "sendbuf:b sendcounts:i(*) sdispls:i(*) sendtype:t recvbuf:b recvcounts:i(*) "
         "rdispls:i(*) recvtype:t comm:c >request:q", all, counts, places, MPI_INT, all + 2 * ranks, counts,
         places, MPI_INT, between, &request);
    CALL(MPI_Wait, "~request:q >status:s", &request, MPI_STATUS_IGNORE);
    RESULT("exchanged", all[2 * ranks]);
    if (position = 0, rank < 2) {
        MPI_Status status;
        CALL(MPI_Sendrecv_replace, "buf:b count:i datatype:t dest:r sendtag:g source:r recvtag:g comm:c "
             ">status:s", &mine, 1, MPI_INT, 0, 9, MPI_ANY_SOURCE, 9, between, &status);
        position = status.MPI_SOURCE;
    }
    CALL(MPI_Intercomm_merge, "intercomm:c high:l >newintracomm:c", between, rank % 2, &merged);
    CALL(MPI_Comm_rank, "comm:c >rank:r", merged, &size);
    RESULT("merged", size, mine, position);
    free_comm(&merged);
    free_comm(&between);
    free_comm(&half);
    free(all);
}

static void collections(void) {
    MPI_Group all, again, first, rest, both, none, range, others;
    int zero = 0, size, position, result, there[2], asked[2] = {0, MPI_PROC_NULL};
    int spans[1][3] = {{0, ranks - 1, 1}}, head[1][3] = {{0, 0, 1}};
    CALL(MPI_Comm_group, "comm:c >group:p", WORLD, &all);
    /* MPI may give the handle of a living group; it stays one until both are freed. */
    CALL(MPI_Comm_group, "comm:c >group:p", WORLD, &again);
    free_group(&again);
    CALL(MPI_Group_size, "group:p >size:i", all, &size);
    CALL(MPI_Group_rank, "group:p >rank:u", all, &position);
    CALL(MPI_Group_incl, "group:p n:i ranks:r(n) >newgroup:p", all, 1, &zero, &first);
    CALL(MPI_Group_excl, "group:p n:i ranks:r(n) >newgroup:p", all, 1, &zero, &rest);
    CALL(MPI_Group_union, "group1:p group2:p >newgroup:p", first, rest, &both);
    CALL(MPI_Group_compare, "group1:p group2:p >result:i", all, both, &result);
    RESULT("group", size, position, result == MPI_IDENT);
    CALL(MPI_Group_intersection, "group1:p group2:p >newgroup:p", first, rest, &none);
    CALL(MPI_Group_rank, "group:p >rank:u", rest, &position);
    RESULT("in the rest", position == MPI_UNDEFINED ? -1 : position, none == MPI_GROUP_EMPTY);
    members = 3;
    CALL(MPI_Group_range_incl, "group:p n:i ranges:r(*) >newgroup:p", all, 1, spans, &range);
    CALL(MPI_Group_range_excl, "group:p n:i ranges:r(*) >newgroup:p", all, 1, head, &others);
    CALL(MPI_Group_translate_ranks, "group1:p n:i ranks1:r(n) group2:p >ranks2:r(n)", rest, ranks < 2 ? 1 : 2,
         asked + (ranks < 2), both, there);
    RESULT("translated", ranks < 2 ? 0 : there[0]);
    CALL(MPI_Group_difference, "group1:p group2:p >newgroup:p", both, rest, &again);
    MPI_Group *made[] = {&again, &others, &range, &both, &rest, &first, &all};
    for (int i = 0; i < 7; i++)
        if (*made[i] != MPI_GROUP_EMPTY) free_group(made[i]);
}

/* ---- topologies ---------------------------------------------------------------------------- */

static void cartesian(void) {
    MPI_Comm grid, row;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, place[2], size[2], around[2], keep[2] = {0, 1}, number, kind,
        spot;
    int mine = rank + 1, met[4] = {0};
    CALL(MPI_Dims_create, "nnodes:i ndims:i ~dims:i(ndims)", ranks, 2, dims);
    CALL(MPI_Cart_map, "comm:c ndims:i dims:i(ndims) periods:l(ndims) >newrank:u", WORLD, 2, dims, periods,
         &spot);
    CALL(MPI_Cart_create, "comm_old:c ndims:i dims:i(ndims) periods:l(ndims) reorder:l >comm_cart:c", WORLD,
         2, dims, periods, 1, &grid);
    CALL(MPI_Topo_test, "comm:c >status:u", grid, &kind);
    CALL(MPI_Cartdim_get, "comm:c >ndims:i", grid, &number);
    CALL(MPI_Cart_get, "comm:c maxdims:i >dims:i(maxdims) >periods:l(maxdims) >coords:i(maxdims)", grid, 2,
         size, around, place);
    RESULT("grid", kind == MPI_CART, number, size[0], size[1], around[0], place[0], place[1]);
    members = 2;
    CALL(MPI_Cart_rank, "comm:c coords:i(*) >rank:r", grid, place, &spot);
    CALL(MPI_Neighbor_allgather, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c",
         &mine, 1, MPI_INT, met, 1, MPI_INT, grid);
    RESULT("met", spot, met[0], met[1], met[2], met[3]);
    int counts[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
    MPI_Aint offsets[4] = {0, 0, 0, 0}, apart[4] = {0, 4, 8, 12};
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    members = 4;
    CALL(MPI_Neighbor_allgatherv, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcounts:i(*) displs:i(*) "
         "recvtype:t comm:c", &mine, 1, MPI_INT, met, counts, places, MPI_INT, grid);
    CALL(MPI_Neighbor_alltoallw, "sendbuf:b sendcounts:i(*) sdispls:j(*) sendtypes:t(*) recvbuf:b "
         "recvcounts:i(*) rdispls:j(*) recvtypes:t(*) comm:c", &mine, counts, offsets, types, met, counts,
         apart, types, grid);
    members = 2;
    CALL(MPI_Cart_sub, "comm:c remain_dims:l(*) >newcomm:c", grid, keep, &row);
    CALL(MPI_Comm_size, "comm:c >size:i", row, &number);
    RESULT("row", number, met[0] + met[1] + met[2] + met[3]);
    free_comm(&row);
    free_comm(&grid);
    CALL(MPI_Topo_test, "comm:c >status:u", WORLD, &kind);
}

/* A star: everyone knows rank 0. */
static void graphs(void) {
    MPI_Comm star, ring;
    MPI_Request request;
    int index[4], edges[8], found[8], bounds[4], nodes, links, count, spot, weighted, in, out;
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, one = 3, two = 4, mine[2] = {rank,
        -rank};
    int sources[1], from[1], destinations[1], to[1], ones[1] = {1}, nothing[1] = {0}, got[2] = {0};
    for (int i = 0; i < ranks; i++) {
        index[i] = ranks - 1 + i;
        if (i > 0) { edges[i - 1] = i; edges[ranks - 2 + i] = 0; }
    }
    members = 2 * (ranks - 1);
    CALL(MPI_Graph_map, "comm:c nnodes:i index:i(nnodes) edges:r(*) >newrank:u", WORLD, ranks, index, edges,
         &spot);
    CALL(MPI_Graph_create, "comm_old:c nnodes:i index:i(nnodes) edges:r(*) reorder:l >comm_graph:c", WORLD,
         ranks, index, edges, 0, &star);
    CALL(MPI_Graphdims_get, "comm:c >nnodes:i >nedges:i", star, &nodes, &links);
    CALL(MPI_Graph_get, "comm:c maxindex:i maxedges:i >index:i(maxindex) >edges:r(maxedges)", star, nodes,
         links, bounds, found);
    CALL(MPI_Graph_neighbors_count, "comm:c rank:r >nneighbors:i", star, rank, &count);
    CALL(MPI_Graph_neighbors, "comm:c rank:r maxneighbors:i >neighbors:r(maxneighbors)", star, rank, count,
         found);
    RESULT("star", nodes, links, count, ranks > 1 ? found[0] : 0);
    CALL(MPI_Ineighbor_allgather, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c "
         ">request:q", mine, 1, MPI_INT, found, 1, MPI_INT, star, &request);
    CALL(MPI_Wait, "~request:q >status:s", &request, MPI_STATUS_IGNORE);
    free_comm(&star);

    CALL(MPI_Dist_graph_create_adjacent, "comm_old:c indegree:i sources:r(indegree) "
         "sourceweights:i(indegree) outdegree:i destinations:r(outdegree) destweights:i(outdegree) info:n "
         "reorder:l >comm_dist_graph:c", WORLD, 1, &left, &one, 1, &right, &two, MPI_INFO_NULL, 0, &ring);
    CALL(MPI_Dist_graph_neighbors_count, "comm:c >indegree:i >outdegree:i >weighted:l", ring, &in, &out,
         &weighted);
    CALL(MPI_Dist_graph_neighbors,
         "comm:c maxindegree:i >sources:r(maxindegree) >sourceweights:i(maxindegree) maxoutdegree:i "
         ">destinations:r(maxoutdegree) >destweights:i(maxoutdegree)",
         ring, 1, sources, from, 1, destinations, to);
    RESULT("ring", in, out, weighted, sources[0], from[0], destinations[0], to[0]);
    members = 1;
    CALL(MPI_Neighbor_alltoallv, "sendbuf:b sendcounts:i(*) sdispls:i(*) sendtype:t recvbuf:b "
         "recvcounts:i(*) rdispls:i(*) recvtype:t comm:c", mine, ones, nothing, MPI_INT, got, ones, nothing,
         MPI_INT, ring);
    RESULT("from the left", got[0]);
    free_comm(&ring);
    CALL(MPI_Dist_graph_create_adjacent,
         "comm_old:c indegree:i sources:r(indegree) sourceweights:- outdegree:i destinations:r(outdegree) "
         "destweights:- info:n reorder:l >comm_dist_graph:c",
         WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    CALL(MPI_Dist_graph_neighbors_count, "comm:c >indegree:i >outdegree:i >weighted:l", ring, &in, &out,
         &weighted);
    RESULT("unweighted", in, out, weighted);
    free_comm(&ring);
    members = 1;
    CALL(MPI_Dist_graph_create, "comm_old:c n:i sources:r(n) degrees:i(n) destinations:r(*) weights:- info:n "
         "reorder:l >comm_dist_graph:c", WORLD, 1, &rank, ones, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
         &ring);
    CALL(MPI_Neighbor_alltoall, "sendbuf:b sendcount:i sendtype:t recvbuf:b recvcount:i recvtype:t comm:c",
         mine, 1, MPI_INT, got, 1, MPI_INT, ring);
    RESULT("by a list", got[0]);
    free_comm(&ring);
}

/* ---- infos and attributes ------------------------------------------------------------------ */

static void infos(void) {
    MPI_Info info, copy;
    char key[MPI_MAX_INFO_KEY + 1], value[64];
    int flag, length, count;
    CALL(MPI_Info_create, ">info:n", &info);
    CALL(MPI_Info_set, "info:n key:z value:z", info, "colour", "dark blue");
    CALL(MPI_Info_set, "info:n key:z value:z", info, "path", "a\\b");
    CALL(MPI_Info_get_valuelen, "info:n key:z >valuelen:i >flag:l", info, "size", &length, &flag);
    CALL(MPI_Info_get_valuelen, "info:n key:z >valuelen:i >flag:l", info, "colour", &length, &flag);
    CALL(MPI_Info_get, "info:n key:z valuelen:i >value:z >flag:l", info, "colour", 63, value, &flag);
    SAY(value);
#ifdef OPEN_MPI  /* elsewhere too short a place is an error */
    CALL(MPI_Info_get, "info:n key:z valuelen:i >value:z >flag:l", info, "colour", 4, value, &flag);
    SAY(value);
#endif
    CALL(MPI_Info_get, "info:n key:z valuelen:i >value:z >flag:l", info, "size", 63, value, &flag);
    CALL(MPI_Info_get_nkeys, "info:n >nkeys:i", info, &count);
    CALL(MPI_Info_get_nthkey, "info:n n:i >key:z", info, count - 1, key);
    RESULT("info", length, flag, count);
    CALL(MPI_Info_dup, "info:n >newinfo:n", info, &copy);
    CALL(MPI_Info_delete, "info:n key:z", copy, "colour");
    CALL(MPI_Info_get_nkeys, "info:n >nkeys:i", copy, &count);
#if MPI_VERSION >= 4
    length = 3;
    CALL(MPI_Info_get_string, "info:n key:z ~buflen:i >value:z >flag:l", info, "path", &length, value, &flag);
    RESULT("string", length, flag);
    length = sizeof value;
    CALL(MPI_Info_get_string, "info:n key:z ~buflen:i >value:z >flag:l", info, "colour", &length, value, &flag);
    RESULT("string", length, flag);
#endif
    free_info(&copy);
    free_info(&info);
    RESULT("left", count);
}

static int copies, deletes;

static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)keyval, (void)extra;
    *(void **)out = (char *)in + 1;
    copies++;
    return *flag = 1, MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static void attributes(void) {
    static char cell[8];
    MPI_Comm copy;
    void *value;
    int key, old, flag;
    CALL(MPI_Comm_create_keyval, "comm_copy_attr_fn:a comm_delete_attr_fn:a >comm_keyval:i extra_state:a",
         copy_attribute, delete_attribute, &key, cell);
    CALL(MPI_Comm_create_keyval, "comm_copy_attr_fn:a comm_delete_attr_fn:a >comm_keyval:i extra_state:a",
         MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &old, (void *)0);
    CALL(MPI_Comm_set_attr, "comm:c comm_keyval:i attribute_val:a", WORLD, key, cell);
    CALL(MPI_Comm_set_attr, "comm:c comm_keyval:i attribute_val:a", WORLD, old, cell);
    CALL(MPI_Comm_dup, "comm:c >newcomm:c", WORLD, &copy);
    CALL(MPI_Comm_get_attr, "comm:c comm_keyval:i >attribute_val:k >flag:l", copy, key, &value, &flag);
    RESULT("copied", flag, (char *)value - cell, copies, deletes);
    CALL(MPI_Comm_get_attr, "comm:c comm_keyval:i >attribute_val:k >flag:l", copy, old, &value, &flag);
    RESULT("not copied", flag);
    CALL(MPI_Comm_delete_attr, "comm:c comm_keyval:i", WORLD, key);
    free_comm(&copy);
    CALL(MPI_Comm_delete_attr, "comm:c comm_keyval:i", WORLD, old);
    CALL(MPI_Comm_free_keyval, "~comm_keyval:i", &key);
    CALL(MPI_Comm_free_keyval, "~comm_keyval:i", &old);
    CALL(MPI_Comm_get_attr, "comm:c comm_keyval:i >attribute_val:K >flag:l", WORLD, MPI_TAG_UB, &value, &flag);
    RESULT("keys", key == MPI_KEYVAL_INVALID, deletes, flag, *(int *)value > 32766);
}

/* ---- errors -------------------------------------------------------------------------------- */

static int handled, handled_class;

static void handle(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled++;
    handled_class = *code;
}

static void errors(void) {
    MPI_Comm copy;
    MPI_Errhandler ours, seen;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    char text[MPI_MAX_ERROR_STRING];
    int class, length, code, value = 0, bad = ranks + 5;
    CALL(MPI_Comm_dup, "comm:c >newcomm:c", WORLD, &copy);
    CALL(MPI_Comm_get_errhandler, "comm:c >errhandler:e", copy, &seen);
    CALL(MPI_Errhandler_free, "~errhandler:e", &seen);
    CALL(MPI_Comm_create_errhandler, "comm_errhandler_fn:a >errhandler:e", handle, &ours);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", copy, ours);
    CALL(MPI_Comm_get_errhandler, "comm:c >errhandler:e", copy, &seen);
    CALL(MPI_Errhandler_free, "~errhandler:e", &seen);
    CALL(MPI_Comm_call_errhandler, "comm:c errorcode:i", copy, MPI_ERR_OTHER);
    RESULT("called", handled, handled_class == MPI_ERR_OTHER);
    code = CALL(MPI_Send, "buf:b count:i datatype:t dest:r tag:g comm:c", &value, 1, MPI_INT, bad, 1, copy);
    CALL(MPI_Error_class, "errorcode:i >errorclass:i", code, &class);
    RESULT("our own handler", class == MPI_ERR_RANK, handled, handled_class == code);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", copy, MPI_ERRORS_RETURN);
    CALL(MPI_Errhandler_free, "~errhandler:e", &ours);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", WORLD, MPI_ERRORS_RETURN);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", MPI_COMM_SELF, MPI_ERRORS_RETURN);
    code = CALL(MPI_Bcast, "buffer:b count:i datatype:t root:r comm:c", &value, 1, MPI_INT, bad, copy);
    CALL(MPI_Error_class, "errorcode:i >errorclass:i", code, &class);
    CALL(MPI_Error_string, "errorcode:i >string:z >resultlen:i", class, text, &length);
    SAY(text);
    RESULT("returned", class == MPI_ERR_ROOT, handled);
    code = CALL(MPI_Type_contiguous, "count:i oldtype:t >newtype:t", -1, MPI_INT, &type);
    CALL(MPI_Error_class, "errorcode:i >errorclass:i", code, &class);
    RESULT("no type", class == MPI_ERR_COUNT || class == MPI_ERR_ARG, handled);
    code = CALL(MPI_Comm_set_attr, "comm:c comm_keyval:i attribute_val:a", copy, MPI_KEYVAL_INVALID, (void
                *)0);
    RESULT("no key", code != MPI_SUCCESS);
    CALL(MPI_Add_error_class, ">errorclass:i", &class);
    CALL(MPI_Add_error_code, "errorclass:i >errorcode:i", class, &code);
    CALL(MPI_Add_error_string, "errorcode:i string:z", code, "our very own error");
    CALL(MPI_Error_string, "errorcode:i >string:z >resultlen:i", code, text, &length);
    SAY(text);
    CALL(MPI_Comm_set_errhandler, "comm:c errhandler:e", WORLD, MPI_ERRORS_ARE_FATAL);
    free_comm(&copy);
}

static void queries(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int number, other, flag;
    void *memory;
    CALL(MPI_Initialized, ">flag:l", &flag);
    CALL(MPI_Finalized, ">flag:l", &flag);
    CALL(MPI_Get_version, ">version:i >subversion:i", &number, &other);
    CALL(MPI_Get_library_version, ">version:z >resultlen:i", text, &number);
    CALL(MPI_Get_processor_name, ">name:z >resultlen:i", text, &number);
    RESULT(text, number, flag);
    CALL(MPI_Query_thread, ">provided:i", &number);
    CALL(MPI_Is_thread_main, ">flag:l", &flag);
    CALL(MPI_Alloc_mem, "size:j info:n >baseptr:a", (MPI_Aint)64, MPI_INFO_NULL, &memory);
    CALL(MPI_Free_mem, "base:b", memory);
    double now = COUNTED(MPI_Wtime);
    RESULT("queries", now >= 0, COUNTED(MPI_Wtick) > 0, flag);
    /* Some of these are macros, which no one sees. */
#ifndef MPI_Aint_add
    RESULT("address", COUNTED(MPI_Aint_add, (MPI_Aint)4, (MPI_Aint)8));
#endif
#if MPI_VERSION >= 5
    RESULT("world is", COUNTED(MPI_Comm_fromint, COUNTED(MPI_Comm_toint, WORLD)) == WORLD);
#elif !defined MPI_Comm_c2f
    RESULT("world is", COUNTED(MPI_Comm_f2c, COUNTED(MPI_Comm_c2f, WORLD)) == WORLD);
#endif
}

int main(int argc, char **argv) {
    begin(argc, argv);
    communicators();
    intercommunicators();
    collections();
    cartesian();
    graphs();
    infos();
    attributes();
    errors();
    queries();
    return end();
}
