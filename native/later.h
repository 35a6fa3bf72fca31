/* What can wait: begun at once it would compete for the processors with whatever its client does next. */
#ifndef EXCISE_LATER_H
#define EXCISE_LATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum later { LATER_CREATE, LATER_KILL, LATER_KITS, LATER_FLOOR };

struct later_task {
    enum later kind;
    uint32_t box, tag;
    uint64_t due_ms;
    struct later_task *next;
    size_t size;
    unsigned char body[];
};

/* Begin it after some milliseconds. False if there is no memory. */
bool later_add(enum later kind, uint32_t box, uint32_t tag, const unsigned char *body, size_t size);

/* The creation of this box is not wanted any more. False if it is not here. */
bool later_drop(uint32_t box);

/* How long until the first one is due, as of epoll_wait(2): -1 is for ever. */
int later_wait_ms(void);

/* Hand every one that is due to `begin`. */
void later_begin(void (*begin)(const struct later_task *task));

#endif
