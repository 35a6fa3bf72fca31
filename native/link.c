#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "protocol.h"
#include "watch.h"

enum { FIRST_ROOM = 64 << 10 };

struct buffer outgoing;

static struct watch incoming, writable;
static struct buffer received;
static size_t sent;
static bool is_open, tells;
static uint32_t untold;
static void (*take_frame)(uint8_t op, uint8_t flags, uint32_t id, struct reader body);

bool link_is_open(void) { return is_open; }

static void shrink(struct buffer *buffer)
{
    if (buffer->room > FIRST_ROOM) buffer_free(buffer);
    buffer->used = 0;
}

void link_flush(void)
{
    if (outgoing.failed) is_open = false; /* a frame is lost, and the client would wait for it */
    while (sent < outgoing.used && is_open) {
        ssize_t put = write(writable.fd, outgoing.data + sent, outgoing.used - sent);
        if (put > 0) sent += (size_t)put;
        else if (errno == EAGAIN) break;
        else if (errno != EINTR) is_open = false;
    }
    if (sent < outgoing.used) {
        watch_start(&writable, EPOLLOUT);
        return;
    }
    watch_stop(&writable);
    sent = 0;
    shrink(&outgoing);
}

void link_end(void)
{
    is_open = false;
    watch_close(&incoming);
    watch_close(&writable);
    buffer_free(&received);
    buffer_free(&outgoing);
    sent = 0;
}

static void on_writable(struct watch *watch)
{
    (void)watch;
    link_flush();
}

/* How many bytes the frame at the front of `from` has, as far as that is known. */
static size_t size_of(struct reader from)
{
    if (from.left < HEAD_BYTES) return HEAD_BYTES;
    return HEAD_BYTES + (size_t)take_u32(&from);
}

static void take_frames(void)
{
    struct reader from = reader_of(received.data, received.used);
    while (is_open) {
        size_t size = size_of(from);
        if (size > REQUEST_LIMIT + HEAD_BYTES) is_open = false;
        if (from.left < size || !is_open) break;
        struct reader frame = {from.at, size, false};
        take_u32(&frame);
        uint8_t op = take_u8(&frame), flags = take_u8(&frame);
        take_u16(&frame);
        uint32_t id = take_u32(&frame);
        take_frame(op, flags, id, frame);
        from.at += size;
        from.left -= size;
    }
    if (from.left == 0) {
        shrink(&received);
        return;
    }
    memmove(received.data, from.at, from.left);
    received.used = from.left;
}

void link_tells(void) { tells = true; }

/* Between frames: nobody is in the middle of one while the line is read. */
static void tell(size_t got)
{
    untold += (uint32_t)got;
    if (!tells || untold < LINE_TELL_BYTES) return;
    size_t began = frame_begin(&outgoing, OP_TAKEN, 0, 0);
    put_u32(&outgoing, untold);
    frame_end(&outgoing, began);
    untold = 0;
}

static void on_readable(struct watch *watch)
{
    size_t wanted = size_of(reader_of(received.data, received.used));
    size_t room = wanted > received.used + FIRST_ROOM ? wanted - received.used : FIRST_ROOM;
    unsigned char *into = put_room(&received, room);
    if (into == NULL) {
        is_open = false;
        return;
    }
    ssize_t got = read(watch->fd, into, room);
    received.used -= room - (size_t)(got > 0 ? got : 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) is_open = false;
    if (got > 0) {
        tell((size_t)got);
        take_frames();
    }
}

/* `writable` may be the same socket as `incoming`: it gets a descriptor of its own, to be watched on its own. */
int link_start(int in, int out, void (*take)(uint8_t op, uint8_t flags, uint32_t id, struct reader body))
{
    int other = in == out ? fcntl(out, F_DUPFD_CLOEXEC, 3) : out;
    if (other < 0 || fcntl(in, F_SETFL, O_NONBLOCK) < 0 || fcntl(other, F_SETFL, O_NONBLOCK) < 0) return -1;
    take_frame = take;
    buffer_free(&outgoing); /* with what nobody was there to hear */
    is_open = true;
    watch_open(&incoming, in, on_readable, NULL);
    watch_open(&writable, other, on_writable, NULL);
    watch_start(&incoming, EPOLLIN);
    return incoming.watched ? 0 : -1;
}
