/* A script as one word on one line of bash: $'...'. */
#ifndef EXCISE_QUOTE_H
#define EXCISE_QUOTE_H

#include "wire.h"

void quote(struct buffer *into, const char *script, size_t size);

#endif
