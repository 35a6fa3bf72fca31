/* What is to be said to the driver. It never waits: who does not listen is told later, in order. */
#ifndef EXCISE_OUTBOX_H
#define EXCISE_OUTBOX_H

#include <stdbool.h>

#include "wire.h"

/* Send `text`, with `fd` unless it is -1, and take both over. */
void outbox_post(int socket, struct buffer *text, int fd);

bool outbox_waiting(void);

/* Send what is waiting, as far as the socket takes it. */
void outbox_flush(int socket);

#endif
