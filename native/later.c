#include "later.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 5 };

struct order_kept {
    uint32_t box, tag;
    uint64_t due_ms;
    size_t size;
    struct order_kept *next;
    unsigned char body[];
};

static struct order_kept *first, **last = &first;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool later_add(uint32_t box, uint32_t tag, const unsigned char *body, size_t size)
{
    struct order_kept *kept = malloc(sizeof *kept + size);
    if (kept == NULL) return false;
    *kept = (struct order_kept){.box = box, .tag = tag, .due_ms = now_ms() + WAIT_MS, .size = size};
    memcpy(kept->body, body, size);
    *last = kept;
    last = &kept->next;
    return true;
}

static struct order_kept *take(struct order_kept **link)
{
    struct order_kept *kept = *link;
    *link = kept->next;
    if (*link == NULL) last = link;
    return kept;
}

bool later_drop(uint32_t box)
{
    for (struct order_kept **link = &first; *link; link = &(*link)->next) {
        if ((*link)->box != box) continue;
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

void later_begin(void (*begin)(uint32_t tag, const unsigned char *body, size_t size))
{
    while (first && later_wait_ms() == 0) {
        struct order_kept *due = take(&first);
        begin(due->tag, due->body, due->size);
        free(due);
    }
}
