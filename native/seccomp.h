/* The system calls a jail may make: an allow-list, compiled once by the spawner and put on by every jail. */
#ifndef EXCISE_SECCOMP_H
#define EXCISE_SECCOMP_H

/* Compile the filter; call it once, before any jail is made. Returns 0, or -1 if it would not fit. */
int seccomp_prepare(void);

/* Put the filter on the calling process, for good. no_new_privs must be set. Returns 0 or -1 with errno. */
int seccomp_enter(void);

#endif
