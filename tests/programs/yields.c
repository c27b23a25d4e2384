/* Part of every test program under MPICH, whichever ABI: a rank that waits gives its processor away, as Open MPI's ranks do with
 * mpi_yield_when_idle. MPICH has no such setting, and the tests run more ranks than there are processors: each would
 * spin to the end of its time slice before another can answer.
 *
 * MPICH's wait loop asks UCX for progress; this function is found before UCX's own. Where MPICH is built without UCX
 * nobody calls it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <sched.h>

#ifdef __cplusplus
extern "C"
#endif
unsigned ucp_worker_progress(void *worker)
{
    typedef unsigned progress_fn(void *);
    static progress_fn *own;
    if (!own)
        own = (progress_fn *)dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned events = own(worker);
    if (!events)
        sched_yield();
    return events;
}
