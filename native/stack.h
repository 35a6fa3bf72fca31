/* What jails are mounted on: read-only lowers, prepared once per spawner, shared by every jail that names them. */
#ifndef EXCISE_STACK_H
#define EXCISE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

struct bind {
    int source; /* names a place among the host's mounts; a mount can be cloned from where it is attached only */
    char target[256];
};

struct stack {
    uint32_t id;
    int lower_count, bind_count;
    int lowers[LOWER_LIMIT]; /* top first; mounts that only we hold */
    bool frozen[LOWER_LIMIT]; /* what a jail wrote: freed when nobody holds it any more */
    struct bind binds[BIND_LIMIT];
    uint32_t boxes; /* that stand on it: it lives on for them after it was dropped */
    bool listed;
    struct stack *next;
};

/* Remember where the host's files are seen, and the ids they are shown with. Called while still among the host's mounts. */
int stacks_prepare(void);

/* Leave the host's mounts for a tree with nothing in it but the host's /proc, the read-only /dev of jails, and /new. */
int stacks_enter_bare_tree(const char *scratch);

/* Take a stack out of a CTL_STACK body. 0, or -1 with errno and the stage that failed. */
int stack_add(const unsigned char *body, size_t size, const char **stage);

/* Add the stack `id`: what is `below`, with a snapshot on top. 0, or -1 with errno. */
int stack_grow(uint32_t id, const struct stack *below, uint32_t snapshot);

struct stack *stack_find(uint32_t id);
int stack_drop(uint32_t id);
void stack_release(struct stack *stack); /* a box less */

/* A mount for each bind, read-only, that only we hold. 0, or -1 with errno. */
int stack_hold_binds(const struct stack *stack, int *mounts);

/* A frozen upper becomes a lower of stacks to come. It takes `upper` (a tmpfs mount with upper/ in it) over. */
int snapshot_keep(uint32_t id, int upper);
int snapshot_find(uint32_t id); /* the directory, or -1 */
/* Let go of it; stacks that have it keep it alive. Returns the descriptor to close elsewhere, or -1. */
int snapshot_forget(uint32_t id);

#endif
