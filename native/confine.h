/* What a jail's first process gives up before it reads a byte from anybody. */
#ifndef EXCISE_CONFINE_H
#define EXCISE_CONFINE_H

#include <stdbool.h>

/* The newest version of Landlock here, 0 if there is none. */
int landlock_version(void);

/* Become root of the user name space behind `users`, whose ids are shifted away from the host's. */
int become_inner_root(int users);

/* Drop capabilities, forbid gaining any, put on Landlock (if there) and the system call filter. On failure returns -1
 * and names the stage. */
int confine(const char **stage);

#endif
