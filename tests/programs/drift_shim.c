/* A monotonic clock that gains DRIFT_PPM millionths. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
  long code = syscall(SYS_clock_gettime, clock, now);
  const char *drift = getenv("DRIFT_PPM");
  if (code == 0 && clock == CLOCK_MONOTONIC && drift) {
    __int128 all = (__int128)now->tv_sec * 1000000000 + now->tv_nsec;
    all += all * atol(drift) / 1000000;
    now->tv_sec = all / 1000000000;
    now->tv_nsec = all % 1000000000;
  }
  return code;
}
