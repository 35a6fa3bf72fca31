/* Persistent shells: one bash, many scripts; directory, variables and functions survive from one to the next. */
#ifndef EXCISE_SHELL_H
#define EXCISE_SHELL_H

#include "action.h"

void shell_open(uint32_t id, struct reader body);
void shell_run(uint32_t id, struct reader body);
void shell_close(uint32_t id, struct reader body);

bool shell_is_busy(const struct action *action);

/* Forget it; whoever calls this has seen to its end. */
void shell_free(struct action *action);

/* The shell itself has ended: answer the script that it ran, if any; there will be no more. */
void shell_over(struct action *action);

#endif
