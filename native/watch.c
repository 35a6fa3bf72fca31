#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 16, DRAINS = 64, DRAIN_BYTES = 64 << 10 };

static int epoll = -1;
static struct epoll_event events[BATCH];
static int batch;

/* Left behind by actions that have ended, read and forgotten: a server in the background may go on printing. */
static struct watch drains[DRAINS];
static int oldest;

int watches_prepare(void)
{
    for (int i = 0; i < DRAINS; i++) drains[i].fd = -1;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll < 0 ? -1 : 0;
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void watch_open(struct watch *watch, int fd, void (*ready)(struct watch *), void *owner)
{
    *watch = (struct watch){fd, false, ready, owner};
}

void watch_start(struct watch *watch, uint32_t wanted)
{
    if (watch->watched || watch->fd < 0) return;
    struct epoll_event event = {wanted, {.ptr = watch}};
    watch->watched = epoll_ctl(epoll, EPOLL_CTL_ADD, watch->fd, &event) == 0;
}

/* Nobody is called any more for what this wait has already found. */
static void forget(struct watch *watch)
{
    for (int i = 0; i < batch; i++)
        if (events[i].data.ptr == watch) events[i].data.ptr = NULL;
}

void watch_stop(struct watch *watch)
{
    if (!watch->watched) return;
    epoll_ctl(epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->watched = false;
    forget(watch);
}

void watch_close(struct watch *watch)
{
    if (watch->fd < 0) return;
    watch_stop(watch);
    close(watch->fd);
    watch->fd = -1;
}

static void drain(struct watch *watch)
{
    static char nowhere[DRAIN_BYTES];
    ssize_t got = read(watch->fd, nowhere, sizeof nowhere);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) watch_close(watch);
}

void watch_let_go(struct watch *watch)
{
    if (watch->fd < 0) return;
    watch_stop(watch);
    struct watch *place = &drains[oldest];
    oldest = (oldest + 1) % DRAINS;
    watch_close(place);
    watch_open(place, watch->fd, drain, NULL);
    watch_start(place, EPOLLIN);
    watch->fd = -1;
}

static int milliseconds_until(uint64_t until_ns)
{
    if (until_ns == 0) return -1;
    uint64_t now = now_ns();
    if (until_ns <= now) return 0;
    uint64_t left = (until_ns - now + 999999) / 1000000;
    return left > 1000000000 ? 1000000000 : (int)left;
}

void watches_wait(uint64_t until_ns)
{
    batch = epoll_wait(epoll, events, BATCH, milliseconds_until(until_ns));
    for (int i = 0; i < batch; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch) watch->ready(watch);
    }
    batch = 0;
}
