/* excise-agent freeze IMAGE TERMS OBJECT RUN_MAIN SIMPLE_STRING EXIT CODE PROGRAM ARGUMENT...
 *
 * PROGRAM is an interpreter that is started with these arguments. It is let run until it has made itself ready and comes
 * to Py_RunMain, which decides what it does. There, and below no frame of anybody's, it is made to run CODE first and
 * then Py_RunMain again: CODE imports, writes TERMS, and stops itself. What the process is then goes into IMAGE; whoever
 * becomes it returns from that stop, and CODE says what Py_RunMain is to do. The three functions are told as offsets in
 * the file OBJECT.
 */
#define _GNU_SOURCE
#include "freeze.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "imprint.h"

#ifdef __x86_64__

enum { IMAGE = 2, TERMS, OBJECT, RUN_MAIN, SIMPLE_STRING, EXIT, CODE, PROGRAM, ROOM = 16 << 10 };

static int complain(const char *what)
{
    fprintf(stderr, "excise-agent: freeze: %s: %s\n", what, strerror(errno));
    return 1;
}

/* Where the byte `offset` of the file `object` is in the process's memory and can be executed; 0: nowhere yet. */
static uint64_t find(pid_t pid, const char *object, uint64_t offset)
{
    char path[32], line[8192], protection[5];
    uint64_t start, end, from, found = 0;
    int name;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end, protection, &from, &name) < 4) continue;
        line[strcspn(line, "\n")] = 0;
        if (protection[2] != 'x' || strcmp(line + name, object) != 0) continue;
        if (offset >= from && offset - from < end - start) found = start + (offset - from);
    }
    if (maps) fclose(maps);
    return found;
}

/* Let it run until something stops it. The signal, or -1 if it has ended. */
static int run(pid_t pid, int how, int signal)
{
    int status;
    if (ptrace(how, pid, NULL, (void *)(intptr_t)signal) < 0 || waitpid(pid, &status, 0) < 0) return -1;
    if (WIFSTOPPED(status)) return WSTOPSIG(status);
    fprintf(stderr, "excise-agent: freeze: it ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    errno = ECHILD;
    return -1;
}

/* Until it stops with `wanted`; other signals are its own business. */
static bool run_until(pid_t pid, int wanted)
{
    int signal = 0;
    while ((signal = run(pid, PTRACE_CONT, signal)) != wanted)
        if (signal < 0) return false;
    return true;
}

static bool run_to(pid_t pid, uint64_t address)
{
    struct user_regs_struct now;
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)address, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, pid, (void *)address, (void *)((word & ~0xffL) | 0xcc)) < 0) return false;
    if (!run_until(pid, SIGTRAP) || ptrace(PTRACE_GETREGS, pid, NULL, &now) < 0) return false;
    return now.rip == address + 1 && ptrace(PTRACE_POKETEXT, pid, (void *)address, (void *)word) == 0;
}

/* Where its first instruction was, which is never run again. */
static uint64_t entry_of(pid_t pid)
{
    char path[32];
    Elf64_auxv_t each;
    uint64_t found = 0;
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fread(&each, sizeof each, 1, file) == 1)
        if (each.a_type == AT_ENTRY) found = each.a_un.a_val;
    if (file) fclose(file);
    return found;
}

/* call rbx; call rbp; mov edi, eax; call r12: CODE, Py_RunMain, and Py_Exit with what that returned. */
static bool divert(pid_t pid, uint64_t run_main, uint64_t simple_string, uint64_t leave, const char *code)
{
    static const unsigned char calls[16] = {0xff, 0xd3, 0xff, 0xd5, 0x89, 0xc7, 0x41, 0xff, 0xd4, 0x0f, 0x0b};
    char path[32];
    struct user_regs_struct now;
    uint64_t entry = entry_of(pid);
    if (entry == 0 || ptrace(PTRACE_GETREGS, pid, NULL, &now) < 0) return false;
    uint64_t text = (now.rsp - ROOM) & ~(uint64_t)15;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    if (memory < 0) return false;
    size_t length = strlen(code) + 1;
    bool written = pwrite(memory, code, length, (off_t)text) == (ssize_t)length &&
                   pwrite(memory, calls, sizeof calls, (off_t)entry) == sizeof calls;
    close(memory);
    now.rip = entry;
    now.rsp = text - ROOM / 4;
    now.rdi = text;
    now.rbx = simple_string;
    now.rbp = run_main;
    now.r12 = leave;
    now.orig_rax = (unsigned long long)-1;
    return written && ptrace(PTRACE_SETREGS, pid, NULL, &now) == 0;
}

static int freeze(pid_t pid, char **words)
{
    const char *object = words[OBJECT];
    uint64_t main_at = 0;
    if (waitpid(pid, NULL, 0) < 0 || ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL) < 0) return complain("start");
    while ((main_at = find(pid, object, strtoull(words[RUN_MAIN], NULL, 0))) == 0)
        if (run(pid, PTRACE_SYSCALL, 0) < 0) return complain("it never had this object");
    if (!run_to(pid, main_at)) return complain("it never came to Py_RunMain");
    uint64_t simple = find(pid, object, strtoull(words[SIMPLE_STRING], NULL, 0));
    uint64_t leave = find(pid, object, strtoull(words[EXIT], NULL, 0));
    if (!simple || !leave || !divert(pid, main_at, simple, leave, words[CODE])) return complain("diverting it");
    if (!run_until(pid, SIGSTOP)) return complain("it never stopped itself");
    return imprint(pid, words[IMAGE], words[TERMS]) ? 0 : complain(imprint_stage);
}

int freeze_main(int count, char **words)
{
    if (count <= PROGRAM + 1) return 2;
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(words[PROGRAM], words + PROGRAM + 1);
        _exit(127);
    }
    int code = pid < 0 ? complain("fork") : freeze(pid, words);
    if (pid > 0) kill(pid, SIGKILL);
    return code;
}

#else

int freeze_main(int count, char **words)
{
    (void)count, (void)words;
    fputs("excise-agent: freeze: not on this kind of processor\n", stderr);
    return 1;
}

#endif
