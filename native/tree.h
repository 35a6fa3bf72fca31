/* The processes that an action started, also those that left its session and lost their parents. Every action's leader
 * carries a tag that its descendants inherit: a hard limit on file locks, which the kernel has kept and ignored since 2.4.
 * Lowering it is all that an unprivileged process can do to it, and later tags are lower than earlier ones: so whoever has
 * changed his has none, or one that nobody was given yet, unless another action began since.
 * Where that limit cannot be set (gVisor's kernel), it is the one on resident memory, which is ignored just so.
 */
#ifndef EXCISE_TREE_H
#define EXCISE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire.h"

enum { NO_TAG = 0 };

/* A tag that no other action of this agent has. */
uint64_t tag_next(void);

/* The calling process, and all that it starts, carry `tag`. Fit for a child of vfork. */
int tag_put_on(uint64_t tag);

/* What /proc/PID/limits says; NO_TAG if it is not one of ours. */
uint64_t tag_in(const char *limits, size_t size);

struct process {
    pid_t pid, parent;
    uint64_t tag;
    char state;
    char name[32];
};

/* What /proc/PID/stat says: "pid (name) state parent ..."; the name is anything, also brackets and blanks. It is cut in
 * pieces. False if it is not that. */
bool process_in(char *stat, struct process *process);

/* Call `each` for every process there is. */
void processes_each(void (*each)(const struct process *process, void *context), void *context);

/* Send a signal to everything that carries `tag`; how many that were. NO_TAG stands for all tags of this agent. */
int tree_signal(uint64_t tag, int signal);

/* Nobody is here who was not started by us: so nobody who never had a tag, but for the kernel's threads where it is a
 * kernel of its own: these are not looked at. */
void tree_is_ours(bool with_kernel);

/* Kill everything that carries `tag`, and whoever has changed his; how many that were. */
int tree_kill(uint64_t tag);

#endif
