/* Entries as the client sees them: what a file is, without its content. */
#ifndef EXCISE_LISTING_H
#define EXCISE_LISTING_H

#include <stddef.h>

#include "wire.h"

enum { LISTING_SHORT = 2000, LISTING_BYTES = 64 << 20 };

/* One entry of the protocol, of `name` in `directory` (or, `name` being empty, of what is open as `directory`), called `as`. */
int put_entry(struct buffer *into, int directory, const char *name, const char *as);

/* The body of OP_ENTRIES. EOVERFLOW if there are more than `most`, or they take more than LISTING_BYTES. */
int put_entries(struct buffer *into, int directory, size_t most);

#endif
