/* Opening what a client names. The process's root is the sandbox's, so neither `..` nor a link leads out of it; what is
 * kept out besides are the kernel's own links (/proc/self/fd/3), which lead to descriptors instead of names, and the
 * agent's own entries in /proc. Nothing here blocks: pipes, sockets and devices are looked at and not opened.
 * Paths are absolute. Everything returns -1 with errno on failure.
 */
#ifndef EXCISE_PLACE_H
#define EXCISE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { NAME_ROOM = NAME_MAX + 1 };

int place_open(const char *path, int flags);

/* A regular file, for O_RDONLY or O_WRONLY. EISDIR or ENXIO if it is something else, EACCES if it is the agent itself. */
int place_regular(const char *path, int access);

/* The directory that holds the last name of `path`, and that name. EINVAL if there is none: `/`, `.`, `..`. */
int place_parent(const char *path, char name[NAME_ROOM]);

/* The same for the place that links in the last name lead to, whether or not something is there. */
int place_followed(const char *path, char name[NAME_ROOM]);

/* Make the directories above the last name that are missing, owned as told. */
int place_make_parents(const char *path, uid_t uid, gid_t gid);

/* Make one directory with exactly that mode. */
int place_make_directory(int parent, const char *name, mode_t mode);

bool place_is_proc(int fd);

/* Close without touching errno; -1 is fine. */
void place_close(int fd);

#endif
