/* Stands between a tool and MPI while a run is replayed: of the calls that complete some of several requests, the next
   may be given another array, in which requests are null that are not to complete yet. A tool in front of it sees the
   program's own array. Linked against no MPI: it is preloaded into either. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static __thread char *mask;
static __thread const unsigned char *used;
static __thread size_t length, width;

void ampl_replay_mask(char *array, const unsigned char *positions, size_t count, size_t bytes) {
  mask = array;
  used = positions;
  length = count;
  width = bytes;
}

static void *own(const char *name) { return dlsym(RTLD_DEFAULT, name); }

/* The array that MPI is to see. */
static void *seen(void *requests) { return mask ? mask : requests; }

/* Hands back what MPI has changed. */
static void hand_back(char *requests) {
  if (!mask)
    return;
  for (size_t at = 0; at < length; at++)
    if (used[at])
      memcpy(requests + at * width, mask + at * width, width);
  mask = NULL;
}

int MPI_Waitany(int count, void *requests, int *index, void *status) {
  int (*call)(int, void *, int *, void *) = own("PMPI_Waitany");
  int code = call(count, seen(requests), index, status);
  hand_back(requests);
  return code;
}

int MPI_Testany(int count, void *requests, int *index, int *flag, void *status) {
  int (*call)(int, void *, int *, int *, void *) = own("PMPI_Testany");
  int code = call(count, seen(requests), index, flag, status);
  hand_back(requests);
  return code;
}

int MPI_Waitsome(int count, void *requests, int *done, int *indices, void *statuses) {
  int (*call)(int, void *, int *, int *, void *) = own("PMPI_Waitsome");
  int code = call(count, seen(requests), done, indices, statuses);
  hand_back(requests);
  return code;
}

int MPI_Testsome(int count, void *requests, int *done, int *indices, void *statuses) {
  int (*call)(int, void *, int *, int *, void *) = own("PMPI_Testsome");
  int code = call(count, seen(requests), done, indices, statuses);
  hand_back(requests);
  return code;
}
