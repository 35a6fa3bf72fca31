#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "answer.h"
#include "link.h"
#include "protocol.h"
#include "watch.h"
#include "wire.h"

enum { PIECE = 4096 };

struct relay {
    struct watch watch;
    struct buffer answer;
    uint32_t id;
    struct relay *next;
};

static struct relay *relays;

static void drop(struct relay *gone)
{
    struct relay **link = &relays;
    while (*link != gone) link = &(*link)->next;
    *link = gone->next;
    watch_close(&gone->watch);
    buffer_free(&gone->answer);
    free(gone);
}

static bool is_whole(const struct buffer *answer)
{
    struct reader head = reader_of(answer->data, answer->used);
    uint32_t size = take_u32(&head);
    return !head.bad && answer->used == HEAD_BYTES + (size_t)size;
}

static void on_answer(struct watch *watch)
{
    struct relay *from = watch->owner;
    unsigned char *into = put_room(&from->answer, PIECE);
    ssize_t got = into ? read(watch->fd, into, PIECE) : 0;
    if (into) from->answer.used -= PIECE - (size_t)(got > 0 ? got : 0);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
    if (is_whole(&from->answer)) put_bytes(&outgoing, from->answer.data, from->answer.used);
    else answer_error(from->id, ECANCELED, "the process that did it was killed before its end");
    drop(from);
}

int relay(int from, uint32_t id)
{
    struct relay *made = calloc(1, sizeof *made);
    if (made == NULL || fcntl(from, F_SETFL, O_NONBLOCK) < 0) {
        free(made);
        close(from);
        return -1;
    }
    made->id = id;
    made->next = relays;
    relays = made;
    watch_open(&made->watch, from, on_answer, made);
    watch_start(&made->watch, EPOLLIN);
    return 0;
}

void relays_forget(void)
{
    while (relays) drop(relays);
}
