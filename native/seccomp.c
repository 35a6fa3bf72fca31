/* What is not on the list is refused, and why:
 *
 *   mount umount2 pivot_root fsopen move_mount open_tree mount_setattr  the file system tree is the jail's wall
 *   setns unshare(new name space) clone(new name space)                 a nested user name space is most of the kernel's
 *                                                                       attack surface for the unprivileged
 *   clone3                          its flags lie in memory that a filter cannot read: "not implemented", and C
 *                                   libraries fall back to clone
 *   bpf perf_event_open userfaultfd add_key keyctl request_key          not confined by any name space, or a usual part of
 *   io_uring_* fanotify_* vmsplice(no) memfd_secret                     kernel exploits
 *   kexec_* init_module finit_module delete_module reboot swapon swapoff acct quotactl syslog nfsservctl iopl ioperm
 *   settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname  the host's own state
 *   open_by_handle_at lookup_dcookie                                    reach files past the mounts
 *   modify_ldt vm86 uselib ustat sysfs _sysctl create_module ...        old, unused, and a source of bugs
 *   socket other than unix, inet, inet6, netlink                        packet, vsock, alg, bluetooth ... are not confined
 *   socketpair other than unix      makes a socket of any kind before it finds that there are no pairs of it
 *   protocols of inet but TCP, UDP, ICMP, and of netlink but routes and device news     asked for, the kernel loads code
 *                                   for them that nobody else on the host uses (SCTP, DCCP, L2TP, XFRM ...)
 *   ioctl TIOCSTI TIOCLINUX                                             typing into somebody's terminal
 *   personality other than the usual ones                               weakens address space layout for setuid programs
 *   the 32-bit and x32 tables                                           a second, untested door to the same kernel
 *   io_setup                        counted for the whole host (fs.aio-max-nr): one jail could have them all
 *
 * sync and syncfs are answered as done: a jail writes to memory, and may not make the host flush its disks.
 * A call that this list has never heard of is "not implemented", so that programs made for newer kernels fall back.
 */
#include "seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "this architecture has no list of system calls yet"
#endif

#define NAME_SPACES \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))

enum { CALLS = 512, ROOM = 1024, CHECKS = 5 };
enum verdict { UNKNOWN, REFUSED, ALLOWED, DONE, FLAGS_CLONE, FLAGS_UNSHARE, SOCKET, PAIR, REQUEST, PERSONA };

static struct sock_filter program[ROOM];
static unsigned short length;

static const short allowed[] = {
#include "seccomp_allowed.inc"
};

/* Known, and refused with EPERM rather than "not implemented". */
static const short refused[] = {
#include "seccomp_refused.inc"
};

static unsigned char verdicts[CALLS];

static void classify(void)
{
    memset(verdicts, UNKNOWN, sizeof verdicts);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) verdicts[allowed[i]] = ALLOWED;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) verdicts[refused[i]] = REFUSED;
    verdicts[__NR_clone] = FLAGS_CLONE;
    verdicts[__NR_unshare] = FLAGS_UNSHARE;
    verdicts[__NR_sync] = verdicts[__NR_syncfs] = DONE;
    verdicts[__NR_socket] = SOCKET;
    verdicts[__NR_socketpair] = PAIR;
    verdicts[__NR_ioctl] = REQUEST;
    verdicts[__NR_personality] = PERSONA;
}

static unsigned short put(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (length < ROOM) program[length] = (struct sock_filter){code, yes, no, k};
    return length++;
}

static void answer(uint32_t value) { put(BPF_RET | BPF_K, value, 0, 0); }

static void load(size_t offset) { put(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }

static void load_argument(int which) { load(offsetof(struct seccomp_data, args) + 8 * (size_t)which); }

static void one_of(const uint32_t *values, int count, uint32_t if_so, uint32_t if_not)
{
    for (int i = 0; i < count; i++) put(BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
    answer(if_not);
    answer(if_so);
}

enum { UNIX = 1, INET = 2, INET6 = 10, NETLINK = 16, RAW = 3, TYPES = 0xf, PROTOCOLS = 7 };

static void socket_check(void)
{
    static const uint32_t protocols[PROTOCOLS] = {0, 1, 6, 17, 58, 255, 262}; /* any, ICMP, TCP, UDP, ICMPv6, raw, MPTCP */
    static const uint32_t news[] = {0, 15};                                   /* routes, devices */
    load_argument(0);
    put(BPF_JMP | BPF_JEQ | BPF_K, UNIX, 0, 1);
    answer(SECCOMP_RET_ALLOW);
    put(BPF_JMP | BPF_JEQ | BPF_K, NETLINK, 0, 5);
    load_argument(2);
    one_of(news, 2, SECCOMP_RET_ALLOW, REFUSE(EPROTONOSUPPORT));
    put(BPF_JMP | BPF_JEQ | BPF_K, INET, 2, 0);
    put(BPF_JMP | BPF_JEQ | BPF_K, INET6, 1, 0);
    answer(REFUSE(EAFNOSUPPORT));
    load_argument(1);
    put(BPF_ALU | BPF_AND | BPF_K, TYPES, 0, 0);
    put(BPF_JMP | BPF_JGT | BPF_K, RAW, 0, 1);
    answer(REFUSE(ESOCKTNOSUPPORT));
    load_argument(2);
    one_of(protocols, PROTOCOLS, SECCOMP_RET_ALLOW, REFUSE(EPROTONOSUPPORT));
}

static void check(enum verdict which)
{
    static const uint32_t pairs[] = {UNIX};
    static const uint32_t requests[] = {0x5412, 0x541c};           /* TIOCSTI, TIOCLINUX */
    static const uint32_t personas[] = {0, 8, 0x20000, 0x20008, 0x40000, 0x60000, 0xffffffff};
    switch (which) {
    case FLAGS_CLONE:
    case FLAGS_UNSHARE:
        load_argument(0);
        put(BPF_JMP | BPF_JSET | BPF_K, NAME_SPACES | (which == FLAGS_UNSHARE ? 0x80u : 0), 0, 1); /* 0x80: time */
        answer(REFUSE(EPERM));
        answer(SECCOMP_RET_ALLOW);
        break;
    case SOCKET: socket_check(); break;
    case PAIR:
        load_argument(0);
        one_of(pairs, 1, SECCOMP_RET_ALLOW, REFUSE(EAFNOSUPPORT));
        break;
    case REQUEST:
        load_argument(1);
        one_of(requests, 2, REFUSE(EPERM), SECCOMP_RET_ALLOW);
        break;
    case PERSONA:
        load_argument(0);
        one_of(personas, 7, SECCOMP_RET_ALLOW, REFUSE(EPERM));
        break;
    case REFUSED: answer(REFUSE(EPERM)); break;
    case ALLOWED: answer(SECCOMP_RET_ALLOW); break;
    case DONE: answer(REFUSE(0)); break;
    case UNKNOWN: answer(REFUSE(ENOSYS)); break;
    }
}

/* A binary search for the run of equal verdicts that the call's number lies in: the kernel tries every number once when
 * the filter is put on, so its depth is paid at every creation. */
static void search(const int *starts, int count)
{
    if (count == 1) {
        check(verdicts[starts[0]]);
        return;
    }
    int half = count / 2;
    put(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)starts[half], 0, 1);
    unsigned short jump = put(BPF_JMP | BPF_JA, 0, 0, 0);
    search(starts, half);
    if (jump < ROOM) program[jump].k = (uint32_t)(length - jump - 1);
    search(starts + half, count - half);
}

int seccomp_prepare(void)
{
    int starts[CALLS], runs = 0;
    classify();
    length = 0;
    for (int call = 0; call < CALLS; call++)
        if (call == 0 || verdicts[call] != verdicts[call - 1]) starts[runs++] = call;
    load(offsetof(struct seccomp_data, arch));
    put(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    answer(REFUSE(ENOSYS));
    load(offsetof(struct seccomp_data, nr));
    put(BPF_JMP | BPF_JGE | BPF_K, CALLS, 0, 1);
    answer(REFUSE(ENOSYS));
    search(starts, runs);
    return length <= ROOM ? 0 : -1;
}

int seccomp_enter(void)
{
    struct sock_fprog filter = {length, program};
    return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
}
