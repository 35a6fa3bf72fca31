/* Stdin that came before the command that will read it. */
#ifndef EXCISE_KEPT_H
#define EXCISE_KEPT_H

#include <stdint.h>

#include "wire.h"

/* 0, or the errno to answer with. */
int kept_add(uint32_t id, const unsigned char *data, size_t size);

/* Move what was kept for `id`, if anything, into an empty buffer. */
void kept_take(uint32_t id, struct buffer *into);

/* Nobody will come for it. */
void kept_drop(uint32_t id);

#endif
