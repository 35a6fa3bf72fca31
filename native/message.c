#define _GNU_SOURCE
#include "message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"

int message_send(int socket, const void *data, size_t size, const int *fds, int count, int flags)
{
    union {
        char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * (size_t)count);
    }
    ssize_t put;
    do put = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
    while (put < 0 && errno == EINTR);
    return put < 0 ? -1 : 0;
}

bool message_receive(int socket, void *data, size_t room, struct received *got)
{
    union {
        char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec part = {data, room};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t size;
    do size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    got->count = 0;
    if (size == 0) errno = EPIPE;
    if (size <= 0) return false;
    got->size = (size_t)size;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head == NULL || head->cmsg_type != SCM_RIGHTS) return true;
    got->count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(got->fds, CMSG_DATA(head), sizeof(int) * (size_t)got->count);
    return true;
}

bool take_name(struct reader *from, char *into, size_t room)
{
    uint16_t length = take_u16(from);
    into[0] = 0;
    if (length >= room) from->bad = true;
    if (from->bad) return false;
    take_bytes(from, into, length);
    into[length] = 0;
    if (strlen(into) != length) from->bad = true;
    return !from->bad;
}

void put_failure(struct buffer *into, uint32_t tag, int error, const char *stage)
{
    size_t size = strlen(stage);
    put_u32(into, CTL_FAILED);
    put_u32(into, tag);
    put_u32(into, (uint32_t)error);
    put_u16(into, (uint16_t)size);
    put_bytes(into, stage, size);
}
