/* A copy of this program lies where the interpreter of an environment was, with `home` written into it. Its process is
 * the one that the shell started: name spaces, limits, groups, terminal, descriptors, umask and parent are what they
 * are for the real one. It maps what was frozen to where it was, and goes on there.
 */
#define _GNU_SOURCE
#include "standin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asked.h"
#include "frozen.h"

enum { HOME_ROOM = 256, RSEQ_UNREGISTER = 1, OWN_STACK = 256 << 10, GROWTH = 9 << 20, GAP = 2 << 20 };

/* The builder writes a path over the second half of this. */
static const volatile char home[8 + HOME_ROOM] = "EXC-WARM";

static char real[PATH_MAX];
static struct frozen frozen;
static int image = -1;

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

bool standin_is_meant(void) { return home[8] != 0; }

static void path_in_home(char path[PATH_MAX], const char *name)
{
    size_t used = 0;
    while (used < HOME_ROOM - 1 && home[8 + used]) {
        path[used] = home[8 + used];
        used++;
    }
    snprintf(path + used, PATH_MAX - used, "/%s", name);
}

static void count(enum reason reason)
{
    char path[PATH_MAX], byte = (char)reason;
    path_in_home(path, "../counts");
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return;
    if (write(file, &byte, 1) < 0) errno = 0; /* a full disk: the count is short */
    close(file);
}

static int be_the_real_one(char **words, char **environment, enum reason why)
{
    count(why);
    execve(real, words, environment);
    fprintf(stderr, "%s: %s: %s\n", words[0], real, strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

/* Only what PATH leads to or an absolute path names is known for what the interpreter would take it for. */
static bool is_kept(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *terms = frozen.terms;
    size_t size = frozen.head->terms_bytes;
    if (slash) return program[0] == '/' && asked_here(program, (size_t)(slash - program), slash + 1, terms, size);
    char path[PATH_MAX];
    for (char *const *each = environ; *each; each++) {
        const char *at = asked_value(*each, "PATH");
        for (size_t length; at; at = at[length] ? at + length + 1 : NULL) {
            length = strcspn(at, ":");
            if (length == 0 || at[0] != '/' || length + strlen(program) + 2 > sizeof path) return false;
            snprintf(path, sizeof path, "%.*s/%s", (int)length, at, program);
            if (access(path, X_OK) == 0) return asked_here(at, length, program, terms, size);
        }
    }
    return false;
}

/* There is one for each hash seed that was thought of, since what is frozen is full of hashes. */
static bool read_image(const char *seed)
{
    char path[PATH_MAX], name[32];
    struct frozen_head head;
    struct stat file;
    if (strlen(seed) > 10 || strchr(seed, '/')) return false;
    snprintf(name, sizeof name, "frozen%s%s", *seed ? "." : "", seed);
    path_in_home(path, name);
    image = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (image < 0 || fstat(image, &file) < 0 || read(image, &head, sizeof head) != sizeof head) return false;
    if (head.table_bytes < sizeof head || head.table_bytes > 16 << 20) return false;
    void *table = mmap(NULL, head.table_bytes, PROT_READ, MAP_PRIVATE, image, 0);
    if ((uint64_t)file.st_size < head.table_bytes || table == MAP_FAILED) return false;
    return frozen_read(table, head.table_bytes, (uint64_t)file.st_size, &frozen);
}

static bool is_as_it_was(const struct frozen_file *was)
{
    struct stat now;
    if (stat(frozen.terms + was->name, &now) < 0) return false;
    if (now.st_mtim.tv_sec != was->mtime_s || now.st_mtim.tv_nsec != was->mtime_ns) return false;
    return was->folder ? S_ISDIR(now.st_mode) : (uint64_t)now.st_size == was->bytes;
}

/* An ignored signal is inherited, and the interpreter asks for some. Those it ignores itself tell nothing. */
static bool signals_are_usual(void)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction now;
        if (number == SIGPIPE || number == SIGXFSZ || sigaction(number, NULL, &now) < 0) continue;
        if (now.sa_handler != SIG_DFL) return false;
    }
    return true;
}

/* Where the kernel has put our own stack is in nobody's way, nor in that of a stack that grows. */
static bool stack_is_apart(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < frozen.head->regions; i++) {
        const struct frozen_region *region = &frozen.regions[i];
        if (region->kind == REGION_STACK && region->start < end + GROWTH && start < region->start) return false;
    }
    return !frozen_touches(&frozen, start, end);
}

static bool addresses_are_free(const char *top)
{
    uint64_t stack = (uint64_t)(uintptr_t)&stack, vdso = getauxval(AT_SYSINFO_EHDR), own = (uint64_t)(uintptr_t)&home;
    uint64_t table = (uint64_t)(uintptr_t)frozen.head;
    if (!stack_is_apart(stack - OWN_STACK, (uint64_t)(uintptr_t)top + GAP)) return false;
    if (frozen_touches(&frozen, vdso - GAP, vdso + GAP) || frozen_touches(&frozen, own - GAP * 4, own + GAP * 4)) return false;
    return !frozen_touches(&frozen, table, table + frozen.head->table_bytes);
}

static enum reason judge(int count, char **words, char **environment)
{
    enum reason reason = asked_for(count, words);
    if (reason != SERVED) return reason;
    if (getauxval(AT_SECURE)) return PRIVILEGED;
    for (int each = 0; each < 3; each++) /* before anything is opened, which would take their place */
        if (fcntl(each, F_GETFD) < 0) return DESCRIPTORS;
    if (count == 1 || words[1][1] == 0) reason = isatty(0) ? NOTHING_ASKED : SERVED;
    if (reason != SERVED) return reason;
    if (!read_image(asked_seed(environment))) return *asked_seed(environment) ? VARIABLES : UNREADABLE;
    if (!is_kept(words[0])) return ELSEWHERE;
    if ((reason = asked_among(environment, frozen.terms, frozen.head->terms_bytes)) != SERVED) return reason;
    const void *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (vdso == NULL || memcmp(vdso, frozen.vdso, frozen.head->vdso_bytes) != 0) return KERNEL;
    if (!signals_are_usual()) return SIGNALS;
    if (!addresses_are_free(environment[0] ? environment[0] : words[0])) return ADDRESSES;
    for (uint32_t i = 0; i < frozen.head->files; i++)
        if (!is_as_it_was(&frozen.files[i])) return CHANGED;
    return SERVED;
}

static bool map_one(const struct frozen_region *region, int file)
{
    int protection = (int)region->protection | (region->fixed ? PROT_WRITE : 0), flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE;
    if (region->kind == REGION_PAGES) flags = MAP_PRIVATE | MAP_FIXED;
    if (region->kind == REGION_EMPTY || region->kind == REGION_STACK) flags |= MAP_ANONYMOUS | MAP_NORESERVE;
    if (region->kind == REGION_STACK) flags |= MAP_GROWSDOWN | MAP_STACK;
    void *at = (void *)(uintptr_t)region->start;
    if (region->kind == REGION_COPY)
        return pread(image, at, region->bytes, (off_t)region->offset) == (ssize_t)region->bytes;
    return mmap(at, region->bytes, protection, flags, file, (off_t)region->offset) == at;
}

static bool map_all(void)
{
    uint32_t last = UINT32_MAX;
    int file = -1;
    for (uint32_t i = 0; i < frozen.head->regions; i++) {
        const struct frozen_region *region = &frozen.regions[i];
        if (region->kind == REGION_FILE && region->file != last) {
            if (file >= 0) close(file);
            last = region->file;
            if ((file = open(frozen.terms + frozen.files[last].name, O_RDONLY | O_CLOEXEC)) < 0) return false;
        }
        if (!map_one(region, region->kind == REGION_FILE ? file : region->kind == REGION_PAGES ? image : -1)) return false;
    }
    if (file >= 0) close(file);
    return true;
}

/* What the C library knows of the vdso, which lies elsewhere in every process. */
static bool fix(void)
{
    uint64_t by = getauxval(AT_SYSINFO_EHDR) - frozen.head->vdso;
    for (uint32_t i = 0; i < frozen.head->fixups; i++) *(uint64_t *)(uintptr_t)frozen.fixups[i] += by;
    for (uint32_t i = 0; i < frozen.head->regions; i++) {
        const struct frozen_region *region = &frozen.regions[i];
        void *at = (void *)(uintptr_t)region->start;
        if (region->fixed && region->kind != REGION_COPY && mprotect(at, region->bytes, (int)region->protection) < 0) return false;
    }
    return true;
}

/* Field number `which` of /proc/self/stat; only the second may have spaces in it, and ends with the last bracket. */
static uint64_t field(const char *stat, int which)
{
    const char *at = strrchr(stat, ')');
    for (int number = 2; at && number < which; number++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* The heap that the C library goes on with is the kernel's idea of it too: what is told besides stays as it is. */
static bool move_heap(void)
{
    char stat[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, stat, sizeof stat - 1);
    if (file >= 0) close(file);
    if (got <= 0 || frozen.head->heap == 0) return false;
    stat[got] = 0;
    struct prctl_mm_map map = {
        .start_code = field(stat, 26), .end_code = field(stat, 27), .start_stack = field(stat, 28),
        .start_data = field(stat, 45), .end_data = field(stat, 46),
        .start_brk = frozen.head->heap, .brk = frozen.head->heap_end,
        .arg_start = field(stat, 48), .arg_end = field(stat, 49), .env_start = field(stat, 50), .env_end = field(stat, 51),
        .exe_fd = UINT32_MAX,
    };
    return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) == 0;
}

/* The kernel writes to these when the thread is moved or ends. */
static bool register_thread(void)
{
    const struct frozen_head *head = frozen.head;
    if (&__rseq_offset != NULL && &__rseq_size != NULL && __rseq_size > 0) {
        char *own = (char *)__builtin_thread_pointer() + __rseq_offset;
        if (syscall(__NR_rseq, own, __rseq_size < 32 ? 32 : __rseq_size, RSEQ_UNREGISTER, head->rseq_signature) < 0) return false;
    }
    if (head->rseq) {
        memset((char *)(uintptr_t)head->rseq, 0, 16);
        if (syscall(__NR_rseq, head->rseq, head->rseq_bytes, 0, head->rseq_signature) < 0) return false;
    }
    *(pid_t *)(uintptr_t)head->tid = (pid_t)syscall(__NR_set_tid_address, head->tid);
    return syscall(__NR_set_robust_list, head->robust, 24) == 0;
}

#ifdef __x86_64__

/* Our own thread's memory is out of reach once the register that leads to it is another. */
_Noreturn static void go_on(const struct frozen_head *head)
{
    register const struct frozen_registers *to __asm__("r11") = &head->registers;
    __asm__ volatile(
        "push %%r11\n\t"
        "mov $158, %%eax\n\t" /* arch_prctl */
        "mov $0x1002, %%edi\n\t" /* ARCH_SET_FS */
        "syscall\n\t"
        "pop %%r11\n\t"
        "mov 0(%%r11), %%rbx\n\t"
        "mov 8(%%r11), %%rbp\n\t"
        "mov 16(%%r11), %%r8\n\t"
        "mov 24(%%r11), %%r9\n\t"
        "mov 32(%%r11), %%r10\n\t"
        "mov 40(%%r11), %%r12\n\t"
        "mov 48(%%r11), %%r13\n\t"
        "mov 56(%%r11), %%r14\n\t"
        "mov 64(%%r11), %%r15\n\t"
        "mov 72(%%r11), %%rdi\n\t"
        "mov 80(%%r11), %%rsi\n\t"
        "mov 88(%%r11), %%rdx\n\t"
        "mov 96(%%r11), %%rsp\n\t"
        "mov 104(%%r11), %%rcx\n\t"
        "xor %%eax, %%eax\n\t"
        "jmp *%%rcx\n\t"
        :
        : "r"(to), "S"(head->thread)
        : "memory");
    __builtin_unreachable();
}

#else

_Noreturn static void go_on(const struct frozen_head *head)
{
    (void)head; /* nothing is frozen on machines that nobody has taught this yet */
    _exit(126);
}

#endif

int standin_main(int number, char **words, char **environment)
{
    path_in_home(real, "python");
    enum reason reason = judge(number, words, environment);
    if (reason != SERVED) return be_the_real_one(words, environment, reason);
    if (!map_all() || !fix() || !move_heap() || !register_thread()) return be_the_real_one(words, environment, MEMORY);
    close(image);
    count(SERVED);
    go_on(frozen.head);
}
