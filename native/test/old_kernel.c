/* Runs a program as if the kernel were 5.4: system calls that came later are not there. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { OLDEST_ABSENT = 435 /* clone3 */, FIRST_OF_OTHERS = 0x40000000 };

int main(int count, char **words)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OLDEST_ABSENT, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_OF_OTHERS, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return 1;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) execv(words[1], words + 1);
    perror(words[1]);
    return 1;
}
