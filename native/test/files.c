/* The file operations alone, for tests: frames from stdin, answers to stdout, the sanitizers' verdict at the end. With an
 * argument it first makes that directory its root.
 */
#define _GNU_SOURCE
#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"

static void copy(int from)
{
    static unsigned char piece[64 << 10];
    for (ssize_t got; (got = read(from, piece, sizeof piece)) > 0;) fwrite(piece, 1, (size_t)got, stdout);
    close(from);
    while (wait(NULL) < 0) continue;
}

int main(int count, char **words)
{
    static unsigned char head[HEAD_BYTES];
    int outside = open("/", O_PATH | O_CLOEXEC);
    if (count > 1 && (chroot(words[1]) < 0 || chdir("/") < 0)) return 1;
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        struct reader from = reader_of(head, sizeof head);
        uint32_t size = take_u32(&from);
        uint8_t op = take_u8(&from), flags = take_u8(&from);
        take_u16(&from);
        uint32_t id = take_u32(&from);
        unsigned char *body = malloc(size + 1);
        if (body == NULL || fread(body, 1, size, stdin) != size) return 1;
        struct buffer answer = {0};
        int later = files_answer(op, flags, id, reader_of(body, size), &answer);
        free(body); /* before the answer is used: it must not point into it */
        if (later >= 0) copy(later);
        if (answer.used) fwrite(answer.data, 1, answer.used, stdout);
        fflush(stdout);
        buffer_free(&answer);
    }
    files_forget();
    return fchdir(outside) < 0 || chroot(".") < 0; /* the leak check wants its /proc */
}
