/* A program that knows nothing of MPI: reads its input, writes both outputs, ends with status 3. */
#include <stdio.h>

int main(void) {
    int lines = 0;
    for (int c; (c = getchar()) != EOF;) lines += c == '\n';
    printf("%d lines\n", lines);
    fprintf(stderr, "and a word on the side\n");
    return 3;
}
