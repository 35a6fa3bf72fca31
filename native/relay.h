/* Answers that a child makes: passed on whole, once they have come to their end. */
#ifndef EXCISE_RELAY_H
#define EXCISE_RELAY_H

#include <stdint.h>

/* Take over the descriptor that the answer to `id` comes out of. 0 or -1. A child that dies before it has answered is
 * answered for. */
int relay(int from, uint32_t id);

/* The client is gone: what still comes is nobody's. */
void relays_forget(void);

#endif
