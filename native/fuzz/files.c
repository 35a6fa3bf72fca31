/* The file operations, in a root of their own on a small file system that nobody else sees, made anew for every input.
 * An input is requests: u8 op, u8 how the body is made, u8 id, u8 size, then that many bytes: the body as it is, or what
 * picks its paths and numbers. Every request is answered by at most one whole frame.
 */
#define _GNU_SOURCE
#include "files.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "protocol.h"
#include "remove.h"
#include "walk.h"

static int outside, scratch;

static void map_self(const char *file, unsigned id)
{
    char text[32];
    int map = open(file, O_WRONLY | O_CLOEXEC);
    int length = snprintf(text, sizeof text, "0 %u 1", id);
    must(map >= 0 && write(map, text, (size_t)length) == length);
    close(map);
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count, (void)words;
    unsigned uid = geteuid(), gid = getegid();
    must(unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) == 0);
    if (uid) {
        int groups = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
        must(groups >= 0 && write(groups, "deny", 4) == 4);
        close(groups);
        map_self("/proc/self/uid_map", uid);
        map_self("/proc/self/gid_map", gid);
    }
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    outside = open("/", O_PATH | O_CLOEXEC);
    must(mount("tmpfs", "/mnt", "tmpfs", 0, "size=1m,nr_inodes=400,mode=755") == 0);
    scratch = open("/mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(outside >= 0 && scratch >= 0);
    return 0;
}

static void go_to(int root) { must(fchdir(root) == 0 && chroot(".") == 0); }

static void make_anew(void)
{
    struct names names;
    char where[PATH_MAX], *name;
    must(names_list(scratch, SIZE_MAX, &names) == 0);
    while ((name = names_next(&names))) {
        must(tree_remove(dup(scratch), name, where, sizeof where) == 0);
        free(name);
    }
    names_free(&names);
    must(mkdir("/d", 0755) == 0 && mkdir("/d/e", 0755) == 0 && mkfifo("/p", 0644) == 0);
    must(symlink("d/e", "/l") == 0 && symlink("m", "/m") == 0 && symlink("../d/f", "/d/n") == 0);
    int file = open("/d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(file >= 0 && write(file, "content", 7) == 7);
    close(file);
}

/* Up to four names of a few; which, says a byte or two of the input. */
static void put_path(struct buffer *into, struct reader *from)
{
    static const char *const names[] = {"d", "e", "f", "l", "m", "n", "p", ".", "..", "", "new", "d/e/../../l"};
    char path[64] = "";
    uint16_t choice = take_u16(from);
    for (int i = choice & 3; i >= 0; i--, choice = (uint16_t)(choice / 12 + 1)) {
        strcat(path, "/");
        strcat(path, names[choice % 12]);
    }
    put_text(into, path, strlen(path));
}

/* Few bits, so that numbers mean something. */
static uint32_t number(struct reader *from)
{
    uint8_t value = take_u8(from);
    return value > 250 ? UINT32_MAX - (255u - value) : value;
}

static void put_body(struct buffer *into, uint8_t op, struct reader *from)
{
    size_t rest;
    switch (op) {
    case OP_READ:
        put_path(into, from);
        put_u64(into, number(from));
        put_u32(into, number(from));
        break;
    case OP_WRITE:
        put_u32(into, number(from));
        for (int i = 0; i < 3; i++) put_u32(into, number(from));
        put_path(into, from);
        const unsigned char *data = take_rest(from, &rest);
        put_bytes(into, data, rest);
        break;
    case OP_MKDIR:
    case OP_CHOWN: put_u32(into, number(from)); /* fall through */
    case OP_STAT:
    case OP_REMOVE:
    case OP_CHMOD: put_u32(into, number(from)); /* fall through */
    case OP_LOOK:
        put_u32(into, 2);
        for (int i = 0; i < 2; i++) put_u32(into, number(from)), put_path(into, from);
        break;
    case OP_DIR:
    case OP_DIGEST: put_path(into, from); break;
    default: put_path(into, from), put_path(into, from);
    }
}

/* The fuzzer's own alarm clock interrupts what waits. */
static void collect(int from, struct buffer *answer)
{
    int status;
    for (ssize_t got = 1; got != 0;) {
        unsigned char *at = put_room(answer, 4096);
        must(at != NULL);
        got = read(from, at, 4096);
        must(got >= 0 || errno == EINTR);
        answer->used -= 4096 - (size_t)(got > 0 ? got : 0);
    }
    close(from);
    while (wait(&status) < 0) must(errno == EINTR);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0 && answer->used);
}

static void request(uint8_t op, uint32_t id, struct reader body)
{
    struct buffer answer = {0};
    int later = files_answer(op, 0, id, body, &answer);
    if (later >= 0) {
        must(answer.used == 0);
        collect(later, &answer);
    }
    if (answer.used) {
        struct reader head = reader_of(answer.data, answer.used);
        must(take_u32(&head) == answer.used - HEAD_BYTES);
        uint8_t kind = take_u8(&head);
        must(kind >= OP_DONE && kind <= OP_ENTRIES && take_u8(&head) == 0 && take_u16(&head) == 0 && take_u32(&head) == id);
    } else {
        must(op == OP_WRITE);
    }
    buffer_free(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader from = reader_of(data, size);
    go_to(scratch);
    make_anew();
    while (from.left && !from.bad) {
        uint8_t op = (uint8_t)(OP_READ + take_u8(&from) % (OP_LOOK - OP_READ + 2)), how = take_u8(&from);
        uint32_t id = take_u8(&from) % 4;
        size_t length = take_u8(&from);
        struct reader body = {from.at, length < from.left ? length : from.left, false};
        from.at += body.left;
        from.left -= body.left;
        struct buffer made = {0};
        if (how & 1) {
            put_body(&made, op, &body);
            body = reader_of(made.data, made.used);
        }
        request(op, id, body);
        buffer_free(&made);
    }
    files_forget();
    go_to(outside);
    return 0;
}
