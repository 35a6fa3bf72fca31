/* The root of a jail: an overlay of a stack's lowers, with what is written going to a tmpfs of its own. */
#ifndef EXCISE_OVERLAY_H
#define EXCISE_OVERLAY_H

#include <stdint.h>

#include "stack.h"

/* A new tmpfs of that size with upper/, work/ and shm/ in it, as a mount that only we hold; the root of the file system
 * is as the stack has it. */
int upper_make(const struct stack *stack, uint64_t bytes, uint64_t inodes);

/* In the jail that is being made: a mount that only we hold. */
int overlay_make(const struct stack *stack, int upper);

/* The same as kernels of old have it: at `path`. */
int overlay_attach(const struct stack *stack, int upper, const char *path);

/* In there: a directory of the upper's tmpfs as a mount of its own. */
int upper_part(int upper, const char *name);

#endif
