#define _GNU_SOURCE
#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

struct letter {
    struct buffer text;
    int fd;
    struct letter *next;
};

static struct letter *first, **last = &first;

/* True unless it has to be tried again. */
static bool sent(int socket, const struct buffer *text, int fd)
{
    int count = fd >= 0 ? 1 : 0;
    return message_send(socket, text->data, text->used, &fd, count, MSG_DONTWAIT) == 0 || errno != EAGAIN;
}

void outbox_post(int socket, struct buffer *text, int fd)
{
    if (first == NULL && !text->failed && sent(socket, text, fd)) {
        buffer_free(text);
        if (fd >= 0) close(fd);
        return;
    }
    struct letter *letter = malloc(sizeof *letter);
    if (letter == NULL) _exit(1); /* a driver that misses an answer would wait for ever: let it see our end instead */
    *letter = (struct letter){*text, fd, NULL};
    *last = letter;
    last = &letter->next;
}

bool outbox_waiting(void) { return first != NULL; }

void outbox_flush(int socket)
{
    while (first && sent(socket, &first->text, first->fd)) {
        struct letter *done = first;
        first = done->next;
        if (first == NULL) last = &first;
        buffer_free(&done->text);
        if (done->fd >= 0) close(done->fd);
        free(done);
    }
}
