#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attach.h"
#include "bury.h"
#include "confine.h"
#include "held.h"
#include "jail.h"
#include "kit.h"
#include "seccomp.h"
#include "stack.h"
#include "subordinate.h"
#include "sys.h"

static int parse(struct start *here, int count, char **words, const char **lease)
{
    bool good = true;
    *lease = NULL;
    for (int i = 2; i + 1 < count && good; i += 2) {
        const char *name = words[i], *value = strdup(words[i + 1]); /* the words themselves are wiped in jails */
        if (value == NULL) return -1;
        if (strcmp(name, "--control") == 0) here->control = atoi(value);
        else if (strcmp(name, "--driver") == 0) here->driver = atoi(value);
        else if (strcmp(name, "--lease") == 0) *lease = value;
        else if (strcmp(name, "--first-id") == 0) first_id = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(name, "--subordinate") == 0) good = subordinate_parse(value);
        else if (strcmp(name, "--mounts") == 0) held_attached = strcmp(value, "attached") == 0;
        else if (strcmp(name, "--cgroup") == 0) good = hierarchy_add(value);
        else good = false;
    }
    if (good && *lease && here->control > 2 && here->driver > 0) return 0;
    if (good) errno = EINVAL;
    return -1;
}

static int start_helpers(struct start *here, const char *lease, const char *scratch, const char **stage)
{
    *stage = "helpers";
    int unneeded[] = {here->control, -1};
    if ((here->burial = bury_start(lease, unneeded, 1)) < 0) return -1;
    unneeded[1] = here->burial;
    return here->kits = kits_start(scratch, unneeded, 2);
}

static void learn_facts(struct start *here)
{
    bool unified = hierarchy_of(UNIFIED) >= 0;
    if (unified) here->facts |= FACT_CGROUP2;
    if (landlock_version() > 0) here->facts |= FACT_LANDLOCK;
    if (first_id) here->facts |= FACT_IDMAP;
}

int start(struct start *here, int count, char **words, const char **stage)
{
    const char *lease;
    char scratch[4200];
    char *end = words[count - 1] + strlen(words[count - 1]) + 1;
    *stage = "arguments";
    if (parse(here, count, words, &lease) < 0) return -1;
    held_prepare();
    snprintf(scratch, sizeof scratch, "%s/scratch", lease);
    *stage = "driver";
    prctl(PR_SET_NAME, "excise-spawner");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* commands inherit it */
    if ((here->driver = (int)syscall(__NR_pidfd_open, here->driver, 0)) < 0) return -1;
    if ((here->self = (int)syscall(__NR_pidfd_open, getpid(), 0)) < 0) return -1;
    *stage = "system call filter";
    if (seccomp_prepare() < 0) return -1;
    if (subordinate_enter(stage) < 0) return -1;
    if (hierarchy_count > (hierarchy_of(UNIFIED) >= 0) && attach_hasten()) here->facts |= FACT_FAST_ATTACH; /* before burial */
    if (start_helpers(here, lease, scratch, stage) < 0) return -1;
    *stage = "mounts";
    if (stacks_prepare() < 0) return -1;
    *stage = "bare tree";
    if (stacks_enter_bare_tree(scratch) < 0) return -1;
    *stage = "resource limits";
    if (jails_prepare(words[0], (size_t)(end - words[0])) < 0) return -1;
    learn_facts(here);
    return 0;
}
