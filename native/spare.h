/* A bash that was started ahead for the next `bash -c SCRIPT`: the start of a shell is dearer than most scripts. */
#ifndef EXCISE_SPARE_H
#define EXCISE_SPARE_H

#include <stdbool.h>
#include <sys/types.h>

#include "action.h"
#include "request.h"

/* If there is one that was started just as `request` asks, it is `action`'s now and runs its script. */
bool spare_take(struct action *action, const struct exec_request *request);

/* The next request will probably be like this one. */
void spare_wish(const struct exec_request *request);

/* Start the one that was wished for; called when there is nothing else to do. */
void spare_make(void);

void spare_kill(void);
bool spare_is(pid_t pid);
bool spare_ended(pid_t pid);

#endif
