/* Mounts that only we hold: layers, snapshots and uppers. Since Linux 6.15 a jail can stand on mounts that are attached
 * nowhere, so that making its tree copies none of them. Before, each has to be attached in the bare tree, at /held/N for
 * the descriptor N, and a jail finds its own copy there.
 */
#ifndef EXCISE_HELD_H
#define EXCISE_HELD_H

#include <stdbool.h>
#include <stddef.h>

enum { HELD_PATH = 32 };

/* Decided once, by the kernel's version, or by whoever wants it so. */
extern bool held_attached;

/* Before anything is held: look at the kernel. */
void held_prepare(void);

/* Hold the mount behind `tree`; returns it, or -1 with errno and it is closed. */
int held_keep(int tree);

/* Another descriptor for the same files. */
int held_copy(int tree);

/* Take it out of the bare tree; the files live on by the descriptor, which is the caller's to close. */
void held_detach(int tree);

/* Where the jail that is being made finds it; only when attached. */
void held_path(int tree, char path[HELD_PATH]);

#endif
