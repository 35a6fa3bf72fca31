/* Orders that can wait: what is begun at once competes for the processors with whatever made somebody order it. */
#ifndef EXCISE_LATER_H
#define EXCISE_LATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keep a CTL_CREATE_LATER for `box` for some milliseconds. False if there is no memory. */
bool later_add(uint32_t box, uint32_t tag, const unsigned char *body, size_t size);

/* It is not wanted any more. False if it is not here. */
bool later_drop(uint32_t box);

/* How long until the first one is due, as of epoll_wait(2): -1 is for ever. */
int later_wait_ms(void);

/* Hand every one that is due to `begin`. */
void later_begin(void (*begin)(uint32_t tag, const unsigned char *body, size_t size));

#endif
