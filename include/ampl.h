/*
 * ampl.h - tell ampl about a program: regions, metrics, markers; ask whether this rank is traced.
 *
 * C99, C11, C++98 and later. Nothing to link: a program that includes this header runs unchanged
 * where ampl is not, and every call is then a load and a branch. Where `ampl run` or `ampl exec`
 * started it, the calls reach the library that was loaded before the program. Linux only, as ampl is.
 *
 * Every function may be called from any thread at any time: before MPI_Init, after MPI_Finalize, in a
 * forked child, on threads that never call MPI. None returns an error, takes part in communication or
 * changes what the program computes. Not from signal handlers. docs/api.md says the rest.
 */
#ifndef AMPL_H
#define AMPL_H

/* Grows when something is added; nothing is ever taken away or changed. */
#define AMPL_H_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How a call gets there. `AMPL_FIND_(variable, symbol)` puts the address of the library's function, or
 * null, into the variable.
 *
 * A weak reference alone is not enough: in a program that is not position-independent the linker makes
 * it null for good, and no library loaded later would ever be found. So the address is read from the
 * global offset table, which the dynamic linker fills in for any kind of program.
 */
#if defined(__x86_64__) && !defined(__ILP32__)
#define AMPL_FIND_(variable, symbol) \
    __asm__(".weak " #symbol "\n\tmovq " #symbol "@GOTPCREL(%%rip), %0" : "=r"(variable))
#elif defined(__aarch64__)
#define AMPL_FIND_(variable, symbol)                                       \
    __asm__(".weak " #symbol "\n\tadrp %0, :got:" #symbol "\n\tldr %0, [%0, #:got_lo12:" #symbol "]" \
            : "=r"(variable))
#else
#define AMPL_FIND_(variable, symbol) ((variable) = 0)
#endif

/* The functions below bear the library's names, so their own symbols need others. */
#define AMPL_INLINE_(type, name, parameters)                       \
    static __inline__ type name parameters __asm__("ampl_h." #name); \
    static __inline__ __attribute__((__unused__)) type name parameters

/*
 * Regions: named spans of the program, on the thread that enters and leaves them. They nest.
 *
 * A region named in the configuration ends windows (`marker = "region:NAME"`, at its exit) or is
 * observed (`event = "region:NAME"`, `event = "path:A>B"`). All are recorded between calls.
 * Names are compared by their text, up to 255 bytes of it.
 */

/* The number of the region of that name, above 0; 0 without ampl, or with more than 1000 names. */
AMPL_INLINE_(int, ampl_region_register, (const char *region_name))
{
    int (*hook)(const char *);
    AMPL_FIND_(hook, ampl_region_register);
    return hook ? hook(region_name) : 0;
}

/* Enters, leaves the region of that number; 0 and unknown numbers are ignored. */
AMPL_INLINE_(void, ampl_region_enter, (int region))
{
    void (*hook)(int);
    AMPL_FIND_(hook, ampl_region_enter);
    if (hook)
        hook(region);
}

AMPL_INLINE_(void, ampl_region_exit, (int region))
{
    void (*hook)(int);
    AMPL_FIND_(hook, ampl_region_exit);
    if (hook)
        hook(region);
}

/* The same by name, which is looked up at each call. */
AMPL_INLINE_(void, ampl_region_begin, (const char *region_name))
{
    void (*hook)(const char *);
    AMPL_FIND_(hook, ampl_region_begin);
    if (hook)
        hook(region_name);
}

AMPL_INLINE_(void, ampl_region_end, (const char *region_name))
{
    void (*hook)(const char *);
    AMPL_FIND_(hook, ampl_region_end);
    if (hook)
        hook(region_name);
}

/*
 * Metrics of the program: residuals, particles, bytes written. A metric that the configuration names
 * (`[[metric]] name = "particles"`) is summed per window, or per visit of a region.
 */

/* The number of the metric of that name, above 0; 0 without ampl, or with more than 1000 names. */
AMPL_INLINE_(int, ampl_metric_register, (const char *metric_name))
{
    int (*hook)(const char *);
    AMPL_FIND_(hook, ampl_metric_register);
    return hook ? hook(metric_name) : 0;
}

/* Adds `value` to the metric's total in the window that is open; 0 and unknown numbers are ignored. */
AMPL_INLINE_(void, ampl_metric_add, (int metric, double value))
{
    void (*hook)(int, double);
    AMPL_FIND_(hook, ampl_metric_add);
    if (hook)
        hook(metric, value);
}

/* A marker, as MPI_Pcontrol(2) is: ends a window under `marker = "pcontrol"`, else nothing. */
AMPL_INLINE_(void, ampl_marker, (void))
{
    void (*hook)(void);
    AMPL_FIND_(hook, ampl_marker);
    if (hook)
        hook();
}

/*
 * 1 while the open window of this rank is in the sample, 0 while it is not or MPI_Pcontrol(0) has
 * paused ampl, -1 where there is no ampl (not loaded, disabled, before MPI_Init, from MPI_Finalize on).
 * A tool that traces itself may follow it from window to window.
 */
AMPL_INLINE_(int, ampl_is_traced, (void))
{
    int (*hook)(void);
    AMPL_FIND_(hook, ampl_is_traced);
    return hook ? hook() : -1;
}

/* The number of this rank's open window, from 0; -1 where there is no ampl. */
AMPL_INLINE_(long, ampl_window, (void))
{
    long (*hook)(void);
    AMPL_FIND_(hook, ampl_window);
    return hook ? hook() : -1;
}

/*
 * For tools that trace by themselves: has `callback` called when a window begins on this rank, with the window's number, 1
 * where ampl keeps it and 0 where it does not or has been paused, and `data`. It is called on the thread that ended the
 * window before, in a call of MPI or of this header, and once at once where ampl has begun. It may call neither MPI nor
 * anything of this header but ampl_is_traced and ampl_window. There is one callback; null takes it back.
 *
 * Register it before MPI_Init, on every rank: ampl then decides before each window (`selection = "predictive"`), and says
 * so. Registered later, it is told the draw of the time, which a later decision may change.
 */
typedef void (*ampl_decision_callback)(long window, int traced, void *data);

AMPL_INLINE_(void, ampl_on_decision, (ampl_decision_callback callback, void *data))
{
    void (*hook)(ampl_decision_callback, void *);
    AMPL_FIND_(hook, ampl_on_decision);
    if (hook)
        hook(callback, data);
}

#ifdef __cplusplus
} /* extern "C" */

namespace ampl {

/* A region for as long as the object lives: left however the scope is, by an exception too. */
class Region {
public:
    explicit Region(const char *region_name) : region_(::ampl_region_register(region_name))
    {
        ::ampl_region_enter(region_);
    }
    /* By number: the name is looked up once, where the number comes from. */
    explicit Region(int region) : region_(region)
    {
        ::ampl_region_enter(region_);
    }
    ~Region()
    {
        ::ampl_region_exit(region_);
    }

private:
    Region(const Region &);
    Region &operator=(const Region &);
    int region_;
};

/* A metric of the program; `Metric particles("particles"); particles.add(n);` */
class Metric {
public:
    explicit Metric(const char *metric_name) : metric_(::ampl_metric_register(metric_name)) {}
    void add(double value) const
    {
        ::ampl_metric_add(metric_, value);
    }

private:
    int metric_;
};

} // namespace ampl
#endif

#endif /* AMPL_H */
