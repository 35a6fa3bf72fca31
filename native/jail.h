/* One jail: a forked child of the spawner that makes itself a world, gives up what it does not need in it, and serves the
 * agent's protocol as its first process. */
#ifndef EXCISE_JAIL_H
#define EXCISE_JAIL_H

#include <sys/types.h>

#include "control.h"
#include "floor.h"
#include "kit.h"
#include "stack.h"

enum { HOSTNAME_ROOM = 65, CPUSET_ROOM = 256 };

struct order {
    struct box_request request;
    char hostname[HOSTNAME_ROOM], cpuset[CPUSET_ROOM];
    uint32_t tag; /* of the request: the child answers it itself */
    int control, spawner; /* the driver's socket; ourselves as a pidfd */
    const struct stack *stack;
    const struct kit *kit;
    struct floor floor;
    int binds[BIND_LIMIT]; /* mounts, in the order of the stack's */
};

/* What is asked of jails whatever they are for; called once, in the bare tree. */
int jails_prepare(char *words, size_t size);

/* Start it. What becomes of it is answered to the driver by the child: CTL_CREATED with the agent's socket, or
 * CTL_FAILED. Returns its pid and a pidfd, or -1 with errno if there is no child. */
pid_t jail_make(const struct order *order, int *pidfd);

#endif
