/* How an action gets what it reads from and prints to, and its process. */
#ifndef EXCISE_LAUNCH_H
#define EXCISE_LAUNCH_H

#include "action.h"
#include "request.h"
#include "spawn.h"

/* Pipes or a terminal, then the program; on failure the reason, and nothing is left. */
bool launch(struct action *action, const struct exec_request *request, const struct account *account,
    struct not_started *why);

/* The environment with a HOME in it. */
void give_home(struct exec_request *request, const struct account *account, char *room, size_t size);

/* A pipe whose end for us does not block; 0 or -1. */
int pipe_from(int *ours, int *theirs);
int pipe_to(int *ours, int *theirs);

extern int nothing; /* /dev/null */
int launches_prepare(void);

#endif
