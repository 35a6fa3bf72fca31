#define _GNU_SOURCE
#include "imprint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "frozen.h"
#include "wire.h"

enum { WORDS = FROZEN_PAGE / sizeof(uint64_t), TERMS_MOST = 1 << 20, BRIDGE = 8 };

const char *imprint_stage = "";

#ifdef __x86_64__

struct mapping {
    uint64_t start, end, offset, dirty_kib;
    char protection[5], *name;
};

struct taken {
    pid_t pid;
    int memory, pages; /* the process's, and where its pages are collected */
    struct frozen_head head;
    struct frozen_region regions[FROZEN_MOST];
    struct frozen_file files[FROZEN_MOST];
    uint64_t fixups[FROZEN_MOST], pages_bytes;
    struct buffer vdso, terms;
};

static struct taken taken;

static bool stopped_at(const char *what)
{
    imprint_stage = what;
    return false;
}

static struct frozen_region *add_region(const struct mapping *of, enum region_kind kind)
{
    if (taken.head.regions == FROZEN_MOST) return NULL;
    struct frozen_region *region = &taken.regions[taken.head.regions++];
    uint32_t rights = (of->protection[0] == 'r' ? PROT_READ : 0) | (of->protection[1] == 'w' ? PROT_WRITE : 0) |
                      (of->protection[2] == 'x' ? PROT_EXEC : 0);
    *region = (struct frozen_region){.start = of->start, .bytes = of->end - of->start, .kind = kind, .protection = rights};
    return region;
}

/* Its number; FROZEN_MOST if there are too many or it is not there. */
static uint32_t add_file(const char *path)
{
    struct stat now;
    uint32_t number = 0;
    for (; number < taken.head.files; number++)
        if (strcmp((char *)taken.terms.data + taken.files[number].name, path) == 0) return number;
    if (number == FROZEN_MOST || stat(path, &now) < 0) return FROZEN_MOST;
    taken.head.files++;
    taken.files[number] = (struct frozen_file){(uint64_t)now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec,
                                               (uint32_t)taken.terms.used, S_ISDIR(now.st_mode)};
    put_bytes(&taken.terms, path, strlen(path) + 1);
    return number;
}

static bool note_fixups(const uint64_t *page, uint64_t address, struct frozen_region *region)
{
    for (int i = 0; i < WORDS; i++) {
        if (page[i] < taken.head.vdso || page[i] >= taken.head.vdso + taken.head.vdso_bytes) continue;
        if (taken.head.fixups == FROZEN_MOST) return false;
        taken.fixups[taken.head.fixups++] = address + (uint64_t)i * sizeof(uint64_t);
        region->fixed = 1;
    }
    return true;
}

static bool is_zero(const uint64_t *page)
{
    uint64_t any = 0;
    for (int i = 0; i < WORDS; i++) any |= page[i];
    return any == 0;
}

/* The pages that are not zero; few zeros between two of them are taken along, so that they are one region. */
static bool take_pages(const struct mapping *of, enum region_kind kind)
{
    uint64_t page[WORDS], zeros = 0;
    struct frozen_region *run = NULL;
    for (uint64_t at = of->start; at < of->end; at += FROZEN_PAGE) {
        if (pread(taken.memory, page, sizeof page, (off_t)at) != sizeof page) return false;
        if (is_zero(page)) {
            if (run && ++zeros > BRIDGE) run = NULL;
            continue;
        }
        if (run == NULL) {
            struct mapping from_here = *of;
            from_here.start = from_here.end = at;
            if ((run = add_region(&from_here, kind)) == NULL) return false;
            run->offset = taken.pages_bytes;
            zeros = 0;
        }
        taken.pages_bytes += zeros * FROZEN_PAGE; /* holes in the file */
        run->bytes += (zeros + 1) * FROZEN_PAGE;
        zeros = 0;
        if (pwrite(taken.pages, page, sizeof page, (off_t)taken.pages_bytes) != sizeof page) return false;
        taken.pages_bytes += FROZEN_PAGE;
        if (!note_fixups(page, at, run)) return false;
    }
    return true;
}

static bool take_vdso(const struct mapping *of)
{
    unsigned char *into = put_room(&taken.vdso, of->end - of->start);
    return into && pread(taken.memory, into, taken.vdso.used, (off_t)of->start) == (ssize_t)taken.vdso.used;
}

static bool take_file(const struct mapping *of)
{
    uint32_t file = add_file(of->name);
    struct frozen_region *region = file == FROZEN_MOST ? NULL : add_region(of, REGION_FILE);
    if (region == NULL) return false;
    region->file = file;
    region->offset = of->offset;
    return true;
}

/* Only what lies above the stack's pointer, and the red zone below that. */
static bool take_stack(struct mapping *of)
{
    uint64_t used = (taken.head.registers.rsp - 256) & ~(uint64_t)(FROZEN_PAGE - 1);
    if (used > of->start) of->start = used;
    return add_region(of, REGION_STACK) && take_pages(of, REGION_COPY);
}

static bool take_mapping(struct mapping *of)
{
    if (strncmp(of->name, "[v", 2) == 0) return true; /* the kernel's own; the vdso was taken before */
    if (strcmp(of->name, "[stack]") == 0) return take_stack(of);
    if (strcmp(of->name, "[heap]") == 0) {
        taken.head.heap = of->start;
        taken.head.heap_end = of->end;
    }
    bool shared = of->protection[3] == 's', of_file = of->name[0] == '/';
    if (shared && (!of_file || of->protection[1] == 'w')) return false;
    if (of_file && (shared || of->dirty_kib == 0)) return take_file(of);
    return add_region(of, REGION_EMPTY) && (strcmp(of->protection, "---p") == 0 || take_pages(of, REGION_PAGES));
}

static bool is_vdso(struct mapping *of)
{
    if (strcmp(of->name, "[vdso]") != 0) return true;
    taken.head.vdso = of->start;
    taken.head.vdso_bytes = of->end - of->start;
    return take_vdso(of);
}

/* Each mapping of the process, with how much of it is its own: a line that names it, and then lines about it. */
static bool each_mapping(bool (*with)(struct mapping *))
{
    char path[32], *line = NULL;
    size_t room = 0;
    struct mapping now = {.name = NULL};
    bool well = true;
    int name;
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)taken.pid);
    FILE *file = fopen(path, "re");
    while (file && well && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "Anonymous: %" SCNu64, &now.dirty_kib) == 1) {
            well = with(&now);
        } else if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &now.start, &now.end, now.protection,
                          &now.offset, &name) >= 4) {
            free(now.name);
            now.name = strdup(line + name);
            well = now.name != NULL;
        }
    }
    if (file) fclose(file);
    free(now.name);
    free(line);
    return file && well;
}

static bool take_terms(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char *into = put_room(&taken.terms, TERMS_MOST);
    ssize_t got = file >= 0 && into ? read(file, into, TERMS_MOST) : -1;
    if (file >= 0) close(file);
    if (got <= 0 || got == TERMS_MOST || into[got - 1] != 0) return false;
    taken.terms.used = (size_t)got;
    put_u8(&taken.terms, 0);
    char *copy = memcpy(malloc((size_t)got), into, (size_t)got);
    bool well = true;
    for (char *term = copy; well && term < copy + got; term += strlen(term) + 1) {
        if (*term == 'W') well = add_file(term + 1) != FROZEN_MOST;
        if (*term == 'T') taken.head.tid = strtoull(term + 1, NULL, 10);
    }
    free(copy);
    return well;
}

static bool take_thread(void)
{
    struct user_regs_struct now;
    struct {
        uint64_t at;
        uint32_t bytes, signature, flags, pad;
    } rseq = {0};
    size_t robust_bytes;
    if (ptrace(PTRACE_GETREGS, taken.pid, NULL, &now) < 0) return false;
    taken.head.registers = (struct frozen_registers){now.rbx, now.rbp, now.r8, now.r9, now.r10, now.r12, now.r13, now.r14,
                                                     now.r15, now.rdi, now.rsi, now.rdx, now.rsp, now.rip};
    taken.head.thread = now.fs_base;
    if (ptrace(0x420f /* PTRACE_GET_RSEQ_CONFIGURATION */, taken.pid, (void *)sizeof rseq, &rseq) < 0) return false;
    taken.head.rseq = rseq.at;
    taken.head.rseq_bytes = rseq.bytes;
    taken.head.rseq_signature = rseq.signature;
    return syscall(__NR_get_robust_list, taken.pid, &taken.head.robust, &robust_bytes) == 0;
}

/* Its number is where we shall write the number of whoever becomes it. */
static bool thread_is_known(void)
{
    uint32_t number = 0;
    return pread(taken.memory, &number, sizeof number, (off_t)taken.head.tid) == sizeof number && number == (uint32_t)taken.pid;
}

static bool put_down(const char *image)
{
    struct buffer table = {0};
    struct frozen_head *head = &taken.head;
    memcpy(head->magic, FROZEN_MAGIC, sizeof head->magic);
    head->version = FROZEN_VERSION;
    head->terms_bytes = taken.terms.used;
    uint64_t bytes = sizeof *head + head->regions * sizeof *taken.regions + head->files * sizeof *taken.files +
                     head->fixups * sizeof *taken.fixups + head->vdso_bytes + head->terms_bytes;
    head->table_bytes = (bytes + FROZEN_PAGE - 1) & ~(uint64_t)(FROZEN_PAGE - 1);
    head->file_bytes = head->table_bytes + taken.pages_bytes;
    for (uint32_t i = 0; i < head->regions; i++)
        if (taken.regions[i].kind == REGION_PAGES || taken.regions[i].kind == REGION_COPY)
            taken.regions[i].offset += head->table_bytes;
    put_bytes(&table, head, sizeof *head);
    put_bytes(&table, taken.regions, head->regions * sizeof *taken.regions);
    put_bytes(&table, taken.files, head->files * sizeof *taken.files);
    put_bytes(&table, taken.fixups, head->fixups * sizeof *taken.fixups);
    put_bytes(&table, taken.vdso.data, taken.vdso.used);
    put_bytes(&table, taken.terms.data, taken.terms.used);
    int file = open(image, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool well = file >= 0 && !table.failed && write(file, table.data, table.used) == (ssize_t)table.used &&
                lseek(file, (off_t)head->table_bytes, SEEK_SET) >= 0;
    for (off_t at = 0; well && at < (off_t)taken.pages_bytes;) {
        char piece[1 << 16];
        ssize_t got = pread(taken.pages, piece, sizeof piece, at);
        well = got > 0 && write(file, piece, (size_t)got) == got;
        at += got;
    }
    buffer_free(&table);
    return file >= 0 && close(file) == 0 && well;
}

bool imprint(pid_t pid, const char *image, const char *terms)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    taken.pid = pid;
    taken.memory = open(path, O_RDONLY | O_CLOEXEC);
    taken.pages = memfd_create("pages", MFD_CLOEXEC);
    if (taken.memory < 0 || taken.pages < 0) return stopped_at("its memory");
    if (!take_terms(terms)) return stopped_at("its terms");
    if (!take_thread() || !thread_is_known()) return stopped_at("its thread");
    if (!each_mapping(is_vdso) || taken.head.vdso == 0) return stopped_at("its vdso");
    if (!each_mapping(take_mapping)) return stopped_at("its mappings");
    return put_down(image) || stopped_at("the image");
}

#else

bool imprint(pid_t pid, const char *image, const char *terms)
{
    (void)pid, (void)image, (void)terms;
    return false;
}

#endif
