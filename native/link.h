/* The agent's end of the connection: whole frames in, whole frames out, neither ever waited for. */
#ifndef EXCISE_LINK_H
#define EXCISE_LINK_H

#include <stdbool.h>

#include "wire.h"

/* What is to be sent. Append frames; `link_flush` sends what it can, the rest goes when the client takes it. */
extern struct buffer outgoing;

/* Start on the two ends (of one socket, or of two pipes); `take` is called for every frame that comes. */
int link_start(int in, int out, void (*take)(uint8_t op, uint8_t flags, uint32_t id, struct reader body));

/* Say from now on how much was read, for a client that may send no more than a serial line keeps. */
void link_tells(void);

/* Close both ends, and forget what was not sent. */
void link_end(void);

void link_flush(void);
bool link_is_open(void);

#endif
