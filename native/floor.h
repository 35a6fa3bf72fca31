/* What a jail stands on: its upper, and the overlay of that over its stack. Who has asked twice for the same will again:
 * the next ones are made ahead, while nobody waits.
 */
#ifndef EXCISE_FLOOR_H
#define EXCISE_FLOOR_H

#include <stdbool.h>

#include "control.h"
#include "stack.h"

struct floor {
    int upper, root; /* root is -1 where the overlay is the jail's to make */
};

/* One for this request, ready or made now. 0, or -1 with errno. */
int floor_take(const struct stack *stack, const struct box_request *request, struct floor *floor);

/* Whether there could be more ready than there are. */
bool floors_wanted(void);

/* Make one of them; what cannot be made is tried when it is asked for. */
void floors_make(void);

/* The stack is dropped: let go of what stands on it. */
void floors_forget(uint32_t stack);

#endif
