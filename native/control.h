/* What the driver asks of its spawner, and hears back: one SOCK_SEQPACKET message each, little endian, packed.
 * The two are built together and trust each other; sandboxes never see this socket. A string is u16 length and bytes.
 * File descriptors ride along as SCM_RIGHTS where a comment says so.
 */
#ifndef EXCISE_CONTROL_H
#define EXCISE_CONTROL_H

#include <stdint.h>

enum { CONTROL_VERSION = 1, CONTROL_BYTES = 128 << 10, LOWER_LIMIT = 400, BIND_LIMIT = 64 };

enum control_op {
    CTL_STACK = 1,    /* struct stack_request, then per lower: u8 kind (0 path, 1 snapshot), string path or u32 snapshot;
                         then per bind: string source, string target -> CTL_OK */
    CTL_UNSTACK = 2,  /* u32 stack -> CTL_OK */
    CTL_CREATE = 3,   /* struct box_request, string hostname, string cpuset -> CTL_CREATED with the agent's socket */
    CTL_DESTROY = 4,  /* u32 box: no answer of its own, CTL_GONE when it is dead */
    CTL_SNAPSHOT = 5, /* u32 box, u32 snapshot, u32 stack to come: kill the box; its upper is the snapshot, and the stack
                         is the box's own with the snapshot on top -> CTL_OK after CTL_GONE */
    CTL_FORGET = 6,   /* u32 snapshot -> CTL_OK */
    CTL_UPPER = 7,    /* u32 box -> CTL_OK with its upper directory, as a descriptor */
    CTL_FROZEN = 8,   /* u32 snapshot -> CTL_OK with its directory, as a descriptor */
    CTL_HELLO = 9,    /* -> CTL_OK: u32 version, u32 facts (enum fact) */
    CTL_CREATE_LATER = 10, /* u32 box whose place was taken, as for CTL_DESTROY, or 0; then as CTL_CREATE, for a jail that
                              nobody waits for yet: begun after some milliseconds */
};

enum control_answer {
    CTL_OK = 64,
    CTL_FAILED = 65,  /* u32 errno, string stage; with tag 0: the spawner itself cannot work, and ends */
    CTL_CREATED = 66, /* u32 pid in the driver's name space, u32 kit: its cgroups are called box-KIT */
    CTL_GONE = 67,    /* u32 box, u32 kit, i32 exit code or minus the signal, u32 kills for want of memory in it */
};

enum fact {
    FACT_FAST_ATTACH = 1, /* cgroups were switched to fast attachment */
    FACT_LANDLOCK = 2,
    FACT_IDMAP = 4,
    FACT_CGROUP2 = 8,
};

struct control_head {
    uint32_t op;
    uint32_t tag; /* of the request that is answered; 0 in CTL_GONE */
} __attribute__((packed));

struct stack_request {
    uint32_t stack;
    uint16_t lowers, binds;
} __attribute__((packed));

struct box_request {
    uint32_t box, stack;
    uint64_t disk_bytes, inodes, memory_bytes, pids; /* 0: not limited */
    uint32_t cpu_quota_us; /* of each 100 ms; 0: not limited */
    uint32_t open_files;   /* 0: as the spawner's own */
} __attribute__((packed));

#endif
