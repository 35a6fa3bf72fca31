/* From a process like any other to one that can make jails. */
#ifndef EXCISE_START_H
#define EXCISE_START_H

#include <stdint.h>

struct start {
    int control; /* the driver's socket */
    int driver;  /* the driver and we as pidfds */
    int self;
    int kits, burial; /* our two helpers */
    uint32_t facts;
};

/* --control FD --driver PID --lease DIR --first-id N [--subordinate UID:GID] [--mounts attached] [--cgroup KIND:DIR ...]: 0, or -1 with errno and the stage. */
int start(struct start *here, int count, char **words, const char **stage);

#endif
