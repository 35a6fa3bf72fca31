#include "later.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 4 }; /* of all alike, so that they are due in the order they came */

static struct later_task *first, **last = &first;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool later_add(enum later kind, uint32_t box, uint32_t tag, const unsigned char *body, size_t size)
{
    struct later_task *task = malloc(sizeof *task + size);
    if (task == NULL) return false;
    *task = (struct later_task){.kind = kind, .box = box, .tag = tag, .due_ms = now_ms() + WAIT_MS, .size = size};
    if (size > 0) memcpy(task->body, body, size);
    *last = task;
    last = &task->next;
    return true;
}

static struct later_task *take(struct later_task **link)
{
    struct later_task *task = *link;
    *link = task->next;
    if (*link == NULL) last = link;
    return task;
}

bool later_drop(uint32_t box)
{
    for (struct later_task **link = &first; *link; link = &(*link)->next) {
        if ((*link)->kind != LATER_CREATE || (*link)->box != box) continue;
        free(take(link));
        return true;
    }
    return false;
}

int later_wait_ms(void)
{
    if (first == NULL) return -1;
    uint64_t now = now_ms();
    return first->due_ms > now ? (int)(first->due_ms - now) : 0;
}

void later_begin(void (*begin)(const struct later_task *task))
{
    while (first && later_wait_ms() == 0) {
        struct later_task *due = take(&first);
        begin(due);
        free(due);
    }
}
