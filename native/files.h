/* File operations without spawning a command: OP_READ to OP_LOOK. */
#ifndef EXCISE_FILES_H
#define EXCISE_FILES_H

#include <stdint.h>

#include "wire.h"

/* Append the whole answer, a frame, to `into` and return -1. What may take long (digests, removal of trees) is done by a
 * child instead: then nothing is appended, and what comes out of the returned descriptor until its end is the answer; the
 * child is reaped by the agent like any other. */
int files_answer(uint8_t op, uint8_t flags, uint32_t id, struct reader body, struct buffer *into);

/* The connection is gone: forget files that are half written, and remove them. */
void files_forget(void);

#endif
