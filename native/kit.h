/* A kit: what a jail needs whatever it is for, made ahead by a process of its own, off the critical path: its name spaces,
 * and a cgroup in every hierarchy. A kit serves one jail and is thrown away. Only its cgroups' names are left on the host,
 * below the lease's own directories; bury.h has them removed.
 */
#ifndef EXCISE_KIT_H
#define EXCISE_KIT_H

#include <stdint.h>

#include "cgroup.h"
#include "spaces.h"

enum { STOCK = 8, LEAST = 3 };

struct kit {
    uint32_t number;
    int spaces[SPACES]; /* -1 where it cannot be had ahead */
    int cgroups[HIERARCHY_LIMIT]; /* the directories, in the order of the hierarchies */
};

/* Start the process that makes kits; it must not keep `unneeded`. Returns the line that kits come out of, or -1. */
int kits_start(const char *scratch, const int *unneeded, int count);

/* Have others made in place of those that were taken: a maker that works while a jail is made is in its way, so not at
 * once, unless few are left. -1 if there is no maker. */
int kits_ask(int line);
int kits_owed(void);
bool kits_are_scarce(void);

/* Take a ready kit, or wait for the one under way. 0, or -1 with errno and the stage that failed. */
int kit_take(int line, struct kit *kit, const char **stage);

/* Close a kit's descriptors; its cgroups stay. */
void kit_close(struct kit *kit);

#endif
