/* A frozen interpreter: one file with everything of a process that another one needs to go on as it, at the same
 * addresses. `freeze` writes it, in a jail of the environment; `standin` becomes it, in any jail of that environment.
 *
 *     struct frozen_head | regions | files | fixups | the vdso | terms | padding | pages
 *
 * Written and read by the same program on the same machine, so in its byte order; read with suspicion all the same,
 * because a jail's root may put a file of his own in its place.
 */
#ifndef EXCISE_FROZEN_H
#define EXCISE_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FROZEN_VERSION = 1, FROZEN_PAGE = 4096, FROZEN_MOST = 4096 };

#define FROZEN_MAGIC "excfrozn"

enum region_kind {
    REGION_EMPTY = 0, /* memory of zeros */
    REGION_PAGES = 1, /* pages of the frozen file, over a region before it */
    REGION_FILE = 2,  /* pages of another file, untouched */
    REGION_STACK = 3, /* memory of zeros that grows downward */
    REGION_COPY = 4,  /* what is to be read from the frozen file into a region before it, which no mapping may split */
};

struct frozen_region {
    uint64_t start, bytes, offset; /* offset in the frozen file or in file number `file` */
    uint32_t kind, protection, file, fixed; /* fixed: has fixups, so it is written to once */
};

/* A file that must be as it was: one that is mapped, or one that the interpreter read when it started. */
struct frozen_file {
    uint64_t bytes;
    int64_t mtime_s, mtime_ns;
    uint32_t name; /* where in the terms; it ends with a zero */
    uint32_t folder; /* whose size tells nothing */
};

/* What a system call that the process was stopped in returns to. */
struct frozen_registers {
    uint64_t rbx, rbp, r8, r9, r10, r12, r13, r14, r15, rdi, rsi, rdx, rsp, rip;
};

struct frozen_head {
    char magic[8];
    uint32_t version, regions, files, fixups;
    uint64_t vdso_bytes, terms_bytes, table_bytes, file_bytes;
    uint64_t vdso, thread, tid, robust, rseq, heap, heap_end;
    uint32_t rseq_bytes, rseq_signature;
    struct frozen_registers registers;
};

struct frozen {
    const struct frozen_head *head;
    const struct frozen_region *regions;
    const struct frozen_file *files;
    const uint64_t *fixups;
    const unsigned char *vdso;
    const char *terms; /* zero-ended words, each of a letter that says what it is and the rest */
};

/* Whether `table`, the first `size` bytes of a frozen file of `file_bytes`, says only what can be done. */
bool frozen_read(const void *table, size_t size, uint64_t file_bytes, struct frozen *into);

/* Whether any region comes within a page of [start, end). */
bool frozen_touches(const struct frozen *frozen, uint64_t start, uint64_t end);

#endif
