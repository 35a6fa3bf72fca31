/* After a virtual machine was copied or stood still: its own time and its own randomness, before anything runs in it. */
#ifndef EXCISE_THAW_H
#define EXCISE_THAW_H

#include <stdint.h>

#include "wire.h"

/* Answers OP_THAW: sets the clock, gives the kernel's generator what was sent and has it start anew from that, and forgets
 * the shell that was started ahead, whose own numbers are those of every other copy. */
void thaw(uint32_t id, struct reader body);

#endif
