/* Memory of a test program. */
#include <stdio.h>

/* KiB of it that are in memory; 0 where the system does not say. */
static long resident(void) {
    long kib = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
    if (status) fclose(status);
    return kib;
}
