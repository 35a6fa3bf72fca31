/* Files that a client writes, in as many pieces as it likes, all under one id: kept out of sight in a file beside the
 * place, which takes its name with the last piece. A failed or forgotten upload leaves nothing, except in place.
 */
#ifndef EXCISE_UPLOAD_H
#define EXCISE_UPLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

enum { UPLOAD_LIMIT = 64 }; /* under way at once */

enum uploaded {
    UPLOAD_GOES_ON, /* nothing to answer yet, or all was answered before */
    UPLOAD_DONE,
    UPLOAD_FAILED, /* with errno; what still comes under this id is dropped */
};

/* `path` counts with WRITE_FIRST only. */
enum uploaded upload_piece(
    uint32_t id, const struct write_head *head, const char *path, const unsigned char *data, size_t size);

void uploads_forget(void);

#endif
