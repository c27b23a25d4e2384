/* A libpapi that counts how often it is asked: FAKE_ONE goes up by 10 at each reading, FAKE_TWO by 3.
 *
 * One running event set at a time, as in PAPI. */
#include <string.h>

#define VERSION 0x07010000

static int events, running;
static long long sums[8], steps[8];

const char *PAPI_strerror(int code) { return code == -7 ? "Event does not exist" : "Something else"; }
int PAPI_get_opt(int option, void *value) { return option == 21 && !value ? VERSION | 2 : -1; }
int PAPI_set_opt(int option, void *value) { return option == 28 && value ? 0 : -1; }
int PAPI_library_init(int version) { return version == VERSION ? VERSION : -1; }
int PAPI_get_event_component(int code) { return code >> 8; }
int PAPI_assign_eventset_component(int set, int component) { return set == 1 && component == 0 ? 0 : -1; }

int PAPI_create_eventset(int *set) {
    *set = 1;
    return 0;
}

int PAPI_event_name_to_code(const char *name, int *code) {
    *code = !strcmp(name, "FAKE_ONE") ? 10 : !strcmp(name, "FAKE_TWO") ? 3 : 0;
    return *code ? 0 : -7;
}

int PAPI_add_named_event(int set, const char *name) {
    int code;
    if (set != 1 || PAPI_event_name_to_code(name, &code)) return -7;
    steps[events++] = code;
    return 0;
}

int PAPI_start(int set) { return set != 1 || running++ ? -10 : 0; }

int PAPI_read(int set, long long *values) {
    if (set != 1 || !running) return -9;
    for (int event = 0; event < events; event++) values[event] = sums[event] += steps[event];
    return 0;
}
