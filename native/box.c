#define _GNU_SOURCE
#include "box.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"

struct box *boxes;

struct box *box_find(uint32_t id)
{
    struct box *each = boxes;
    while (each && each->id != id) each = each->next;
    return each;
}

struct box *box_add(uint32_t id, uint32_t kit, struct stack *stack)
{
    struct box *box = calloc(1, sizeof *box);
    if (box == NULL) return NULL;
    *box = (struct box){.id = id, .kit = kit, .pidfd = -1, .upper = -1, .stack = stack, .next = boxes};
    stack->boxes++;
    boxes = box;
    return box;
}

void box_kill(const struct box *box)
{
    syscall(__NR_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
    cgroups_thaw(box->kit); /* what is frozen by version 1 does not even die */
}

int32_t box_reap(const struct box *box)
{
    siginfo_t end = {0};
    while (waitid((idtype_t)3 /* P_PIDFD */, (id_t)box->pidfd, &end, WEXITED) < 0 && errno == EINTR) continue;
    return end.si_code == CLD_EXITED ? end.si_status : -end.si_status;
}

void box_drop(struct box *box)
{
    struct box **link = &boxes;
    while (*link != box) link = &(*link)->next;
    *link = box->next;
    if (box->pidfd >= 0) close(box->pidfd);
    stack_release(box->stack);
    free(box);
}
