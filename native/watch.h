/* What the agent waits for: descriptors that become ready, and the next point in time. */
#ifndef EXCISE_WATCH_H
#define EXCISE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch {
    int fd; /* -1: not open */
    bool watched;
    void (*ready)(struct watch *watch);
    void *owner;
};

int watches_prepare(void);
void watch_open(struct watch *watch, int fd, void (*ready)(struct watch *), void *owner);
void watch_start(struct watch *watch, uint32_t events); /* EPOLLIN or EPOLLOUT */
void watch_stop(struct watch *watch);
void watch_close(struct watch *watch);
void watch_let_go(struct watch *watch); /* close, and keep what still writes to it from failing, for a while */

/* Wait until `until_ns` at most (0: no end), then call whoever is ready. */
void watches_wait(uint64_t until_ns);

uint64_t now_ns(void);

#endif
