/* Frames that answer the client, appended to what is to be sent. */
#ifndef EXCISE_ANSWER_H
#define EXCISE_ANSWER_H

#include <stdint.h>
#include <sys/resource.h>

#include "output.h"
#include "protocol.h"

void answer_done(uint32_t id);
void answer_error(uint32_t id, int error, const char *message);
void answer_output(uint32_t id, uint8_t stream, const struct output *output);

/* OP_RESULT. What of `result` the two outputs and the clock know is filled in. */
void answer_result(uint32_t id, struct result_head *result, const struct output *out, const struct output *err);

/* What wait4 said, as a shell would say it. */
void result_of(struct result_head *result, int status, const struct rusage *usage);

/* The command never ran. */
void result_not_started(struct result_head *result, enum fault fault, int error);

#endif
