/* The floor under every dispatch: posix_spawn and wait, from a tiny process.
 *
 *   baseline ARGV...          for every byte on stdin: start ARGV, wait, answer the nanoseconds as 8 bytes
 *   baseline --for MS ARGV... start and wait, one after the other, for so long; print how often
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static posix_spawn_file_actions_t quiet;

static uint64_t once(char **argv)
{
    pid_t pid;
    int status;
    uint64_t start = now_ns();
    if (posix_spawn(&pid, argv[0], &quiet, NULL, argv, environ) != 0) exit(1);
    if (waitpid(pid, &status, 0) != pid || status != 0) exit(1);
    return now_ns() - start;
}

int main(int count, char **words)
{
    char wish;
    posix_spawn_file_actions_init(&quiet); /* our own input and output are for whoever asks us */
    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    if (count > 3 && strcmp(words[1], "--for") == 0) {
        uint64_t until = now_ns() + strtoull(words[2], NULL, 10) * 1000000u, done = 0;
        for (; now_ns() < until; done++) once(words + 3);
        printf("%llu\n", (unsigned long long)done);
        return 0;
    }
    while (count > 1 && read(STDIN_FILENO, &wish, 1) == 1) {
        uint64_t took = once(words + 1);
        if (write(STDOUT_FILENO, &took, sizeof took) != sizeof took) return 1;
    }
    return 0;
}
