#define _GNU_SOURCE
#include "floor.h"

#include <string.h>
#include <unistd.h>

#include "held.h"
#include "overlay.h"

enum { READY = 2 };

struct kind {
    uint32_t stack;
    uint64_t bytes, inodes;
};

static struct floor ready[READY];
static int count;
static struct kind kind; /* of those that are ready, or would be */
static bool again;       /* it was asked for twice in a row */

static bool is_kind(const struct kind *other)
{
    return kind.stack == other->stack && kind.bytes == other->bytes && kind.inodes == other->inodes;
}

/* Nothing was ever written to them, so there is nothing to bury. */
static void clear(void)
{
    while (count > 0) {
        close(ready[--count].root);
        close(ready[count].upper);
    }
}

int floor_take(const struct stack *stack, const struct box_request *request, struct floor *floor)
{
    struct kind wanted = {stack->id, request->disk_bytes, request->inodes};
    again = is_kind(&wanted);
    if (!again) clear();
    kind = wanted;
    if (count > 0) {
        *floor = ready[--count];
        return 0;
    }
    *floor = (struct floor){upper_make(stack, wanted.bytes, wanted.inodes), -1};
    return floor->upper < 0 ? -1 : 0;
}

bool floors_wanted(void) { return again && count < READY && !held_attached; }

void floors_make(void)
{
    const struct stack *stack = stack_find(kind.stack);
    if (stack == NULL || !floors_wanted()) return;
    struct floor made = {upper_make(stack, kind.bytes, kind.inodes), -1};
    if (made.upper >= 0) made.root = overlay_make(stack, made.upper);
    if (made.root >= 0) ready[count++] = made;
    else if (made.upper >= 0) close(made.upper);
    if (made.root < 0) again = false;
}

void floors_forget(uint32_t stack)
{
    if (kind.stack != stack) return;
    clear();
    kind = (struct kind){0};
    again = false;
}
