/* Calls per function, counted by the program itself. */
#ifndef TALLY_H
#define TALLY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FUNCTIONS 128

static struct { const char *name; long calls; } tally[MOST_FUNCTIONS];
static int tallied;

static void count_call(const char *name) {
    for (int i = 0; i < tallied; i++)
        if (strcmp(tally[i].name, name) == 0) { tally[i].calls++; return; }
    if (tallied == MOST_FUNCTIONS) { fprintf(stderr, "tally.h: MOST_FUNCTIONS is too small\n"); exit(9); }
    tally[tallied].name = name;
    tally[tallied++].calls = 1;
}

/* {"rank":R,"counts":{…}} on `file`, one line. */
static void print_counts(FILE *file, int rank) {
    fprintf(file, "{\"rank\":%d,\"counts\":{", rank);
    for (int i = 0; i < tallied; i++)
        fprintf(file, "%s\"%s\":%ld", i ? "," : "", tally[i].name, tally[i].calls);
    fprintf(file, "}}\n");
    fflush(file);
}

#endif
