/* The jails that are alive, and what their spawner must remember of each. */
#ifndef EXCISE_BOX_H
#define EXCISE_BOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stack.h"

struct box {
    uint32_t id, kit;
    int pidfd, upper;
    struct stack *stack;
    bool freezes; /* once dead, its upper becomes a snapshot, below a stack to come */
    uint32_t tag, snapshot, grown;
    struct box *next;
};

extern struct box *boxes;

struct box *box_find(uint32_t id);
struct box *box_add(uint32_t id, uint32_t kit, struct stack *stack); /* NULL without memory */
void box_kill(const struct box *box);

/* Wait for its death: its exit code, or minus the signal. */
int32_t box_reap(const struct box *box);

/* Forget it. Its upper is the caller's to close. */
void box_drop(struct box *box);

#endif
