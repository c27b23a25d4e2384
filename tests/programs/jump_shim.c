/* A wall clock that jumps by JUMP_S seconds, once the process is JUMP_AFTER_MS milliseconds old; forth and back again
 * every time that long passes; where it is set back it begins so. With JUMP_ALL the monotonic clock jumps, too, which none does.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long begun;

static long long monotonic_ms(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static time_t jumped(void) {
  const char *seconds = getenv("JUMP_S"), *after = getenv("JUMP_AFTER_MS");
  if (!seconds || !after) return 0;
  if (!begun) begun = monotonic_ms();
  int is_odd = (monotonic_ms() - begun) / atol(after) % 2;
  return is_odd == (atol(seconds) > 0) ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  long code = syscall(SYS_clock_gettime, clock, now);
  int jumps = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (clock == CLOCK_MONOTONIC && getenv("JUMP_ALL")) jumps = 1;
  if (code == 0 && jumps) now->tv_sec += jumped();
  return code;
}

int gettimeofday(struct timeval *now, void *zone) {
  (void)zone;
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
