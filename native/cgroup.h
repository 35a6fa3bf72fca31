/* The cgroups of jails, of version 1 (a hierarchy per controller), 2 (one for all) or both: `box-N` below the lease's own
 * directory in each hierarchy.
 */
#ifndef EXCISE_CGROUP_H
#define EXCISE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

enum { HIERARCHY_LIMIT = 8 };

enum controller { MEMORY, PIDS, CPU, CPUSET, FREEZER, UNIFIED };

struct hierarchy {
    enum controller kind;
    int parent;       /* the lease's directory in it */
    const char *path; /* of the same, as the host sees it */
};

extern struct hierarchy hierarchies[HIERARCHY_LIMIT];
extern int hierarchy_count;

/* Add KIND:PATH; false if that is not one. */
bool hierarchy_add(const char *word);

/* The place of a controller among the hierarchies, or -1. */
int hierarchy_of(enum controller kind);

/* Make the directories of box `number`; 0, or -1 with errno, and what was made is removed. */
int cgroups_make(uint32_t number, int *directories);

/* False while some process in there is still being buried. */
bool cgroups_remove(uint32_t number);

/* Let what was frozen go on, so that it can die. */
void cgroups_thaw(uint32_t number);

/* How many processes of the box the kernel killed for want of memory; 0 too where nothing counts them. */
uint32_t cgroups_oom_kills(uint32_t number);

/* In the new jail: put the limits on, and go in. -1 with errno, and the stage. */
int cgroups_enter(const int *directories, const struct box_request *limits, const char *cpuset, const char **stage);

#endif
