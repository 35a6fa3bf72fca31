/* One message over a socket between processes of ours, with descriptors riding along. */
#ifndef EXCISE_MESSAGE_H
#define EXCISE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

enum { MESSAGE_FDS = 14 };

/* 0, or -1 with errno; `flags` as of send(2). */
int message_send(int socket, const void *data, size_t size, const int *fds, int count, int flags);

struct received {
    size_t size;
    int fds[MESSAGE_FDS], count;
};

/* False at the end, or with errno. */
bool message_receive(int socket, void *data, size_t room, struct received *got);

/* The strings of control.h: u16 length and bytes. False, and the reader is bad, if it is not there or does not fit. */
bool take_name(struct reader *from, char *into, size_t room);

/* CTL_FAILED: errno and what was being done. */
void put_failure(struct buffer *into, uint32_t tag, int error, const char *stage);

#endif
