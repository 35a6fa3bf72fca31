/* Instead of an interpreter: become one that was frozen, or else the real one. */
#ifndef EXCISE_STANDIN_H
#define EXCISE_STANDIN_H

#include <stdbool.h>

/* Whether this copy of the program stands in for an interpreter. */
bool standin_is_meant(void);

/* Does not return but with an exit code of the shell's, if not even the real interpreter can be run. */
int standin_main(int count, char **words, char **environment);

#endif
