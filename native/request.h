/* OP_EXEC and OP_SHELL_OPEN as they come, taken apart: nothing is done yet, so that it can be fuzzed. */
#ifndef EXCISE_REQUEST_H
#define EXCISE_REQUEST_H

#include <stdbool.h>

#include "protocol.h"
#include "wire.h"

struct exec_request {
    struct exec_head head;
    struct text user;
    const char *cwd;
    char **argv, **env; /* ended by NULL */
    const struct exec_limit *limits;
    const unsigned char *input; /* head.stdin_bytes of it */
    const unsigned char *setting; /* the environment and the limits, as they came */
    size_t setting_bytes;
    const char *path;           /* of the environment, or the usual one */
    void *room;                 /* what the pointers above point into */
};

/* 0, or the errno to answer with. Free it with `request_free`. The body must outlive it. */
int request_take(struct reader body, struct exec_request *request);
void request_free(struct exec_request *request);

/* The value of a variable in an environment, or NULL. */
const char *variable(char *const *env, const char *name);

#endif
