/*
 * A plugin of TAU's that joins it with ampl: TAU's timers are regions of ampl, its user events metrics, and TAU traces the
 * rank-windows that ampl keeps. The structures differ from one TAU to the next: compile it against your own.
 *
 *     mpicxx -shared -fPIC -std=c++11 $(make -s -f tau.mk) -I$AMPL/include -o libampl_tau.so ampl_tau.cpp
 */
#include <Profile/Profiler.h>
#include <Profile/TauEnv.h>
#include <Profile/TauPlugin.h>
#include <ampl.h>
#include <cstdlib>
#include <cstring>

/* TAU times MPI as well, within ampl's own calls. */
static bool is_of_mpi(const char *name)
{
    return std::strncmp(name, "MPI_", 4) == 0;
}

static int entered(Tau_plugin_event_function_entry_data_t *timer)
{
    if (!is_of_mpi(timer->timer_name))
        ampl_region_begin(timer->timer_name);
    return 0;
}

static int left(Tau_plugin_event_function_exit_data_t *timer)
{
    if (!is_of_mpi(timer->timer_name))
        ampl_region_end(timer->timer_name);
    return 0;
}

static int triggered(Tau_plugin_event_atomic_event_trigger_data_t *event)
{
    ampl_metric_add(ampl_metric_register(event->counter_name), double(event->value));
    return 0;
}

/* Timers go on; what is not kept leaves no events in TAU's trace. */
static void decided(long, int kept, void *)
{
    TauEnv_set_tracing(kept);
}

/* TAU writes out what it has buffered only while it traces. */
static int ended(Tau_plugin_event_pre_end_of_execution_data_t *)
{
    TauEnv_set_tracing(1);
    return 0;
}

extern "C" int Tau_plugin_init_func(int, char **, int id)
{
    static Tau_plugin_callbacks_t callbacks;

    TAU_UTIL_INIT_TAU_PLUGIN_CALLBACKS(&callbacks);
    callbacks.FunctionEntry = entered;
    callbacks.FunctionExit = left;
    callbacks.AtomicEventTrigger = triggered;
    if (TauEnv_get_tracing()) {
        callbacks.PreEndOfExecution = ended;
        ampl_on_decision(decided, NULL);
    }
    TAU_UTIL_PLUGIN_REGISTER_CALLBACKS(&callbacks, id);
    return 0;
}
