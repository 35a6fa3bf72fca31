/* What a stopped process is, as a file that another can become. */
#ifndef EXCISE_IMPRINT_H
#define EXCISE_IMPRINT_H

#include <stdbool.h>
#include <sys/types.h>

/* What could not be done, if `imprint` returns false. */
extern const char *imprint_stage;

/* Write `image`. `terms` is a file that the process has written, of words as in frozen.h:
 * E, A, D, N as in asked.h; W and a file that must be as it is now; T and the address where its thread's number stands. */
bool imprint(pid_t pid, const char *image, const char *terms);

#endif
