/* One file operation: what was asked, and where its answer goes. */
#ifndef EXCISE_FILEOP_H
#define EXCISE_FILEOP_H

#include <limits.h>
#include <stdint.h>

#include "wire.h"

enum { WHERE = 1024 };

struct fileop {
    uint8_t op;
    uint32_t id;
    struct reader body;
    struct buffer *into;
    char path[PATH_MAX], where[WHERE]; /* the latter below `path`, for messages */
};

/* 0 and the answer (or none is due), or -1 with errno and nothing appended. */
int fileop_read(struct fileop *of);
int fileop_write(struct fileop *of);
int fileop_stat(struct fileop *of);
int fileop_look(struct fileop *of);
int fileop_mkdir(struct fileop *of);
int fileop_rename(struct fileop *of);
int fileop_symlink(struct fileop *of);
int fileop_change(struct fileop *of); /* OP_CHMOD and OP_CHOWN */

/* Take the path that ends the body. */
int fileop_path(struct fileop *of);
int fileop_done(struct fileop *of);
void fileop_failed(struct fileop *of, int error);

#endif
