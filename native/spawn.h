/* Start a program: one vfork, whatever was asked for, one exec. */
#ifndef EXCISE_SPAWN_H
#define EXCISE_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "account.h"
#include "protocol.h"

enum { EXTRA_LIMIT = 3 };

struct spawn {
    char *const *argv, *const *env;
    const char *cwd, *path; /* where programs without a slash are looked for */
    const struct account *account;
    const struct exec_limit *limits;
    uint16_t limit_count, umask;
    int in, out, err;
    struct {
        int from, to;
    } extra[EXTRA_LIMIT];
    int extra_count;
    bool terminal; /* `in` becomes the controlling terminal */
    uint64_t tag;
};

struct not_started {
    enum fault fault; /* FAULT_NONE: what was asked for could not be set up, `error` says why */
    int error;
};

/* Our own /proc/self/oom_score_adj, or -1; whoever moves it says so here. */
extern int spawns_score;

/* Open it, unless it is open, while /proc/self is open to us. */
void spawns_prepare(void);

/* The leader's pid, or -1. The child starts a session of its own and keeps nothing of ours but what is named. */
pid_t spawn(const struct spawn *spawn, struct not_started *why);

#endif
