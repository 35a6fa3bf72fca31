/* The wire between a client and the agent, version 1. docs/protocol.md says it in prose; excise/agent/messages.py says it
 * in Python; tests hold all three together.
 *
 * A frame is an 12 byte head and a body, little endian:
 *
 *     u32 length of the body | u8 op | u8 flags (of the op) | u16 zero | u32 id | body
 *
 * `id` is chosen by the client, never 0 for an action that is alive, and comes back in every frame that answers it.
 * Strings in bodies are length-prefixed: u32 length, then bytes, no zero at the end and none inside.
 */
#ifndef EXCISE_PROTOCOL_H
#define EXCISE_PROTOCOL_H

#include <stdint.h>

enum {
    PROTOCOL_VERSION = 1,
    HEAD_BYTES = 12,
    REQUEST_LIMIT = 8 << 20,   /* a body from the client; more stdin or file content is sent in pieces */
    CHUNK_LIMIT = 256 << 10,   /* a piece of streamed output */
    LOOK_MOST = 1024,          /* paths of one OP_LOOK */
    LINE_BYTES = 3072,         /* sent but not yet TAKEN on a serial line, at most: a terminal driver keeps 4096, and some
                                  never wake again once they were full */
    LINE_TELL_BYTES = 1024,    /* read and not yet told, less than that */
    CREDIT_BYTES = 1 << 20,    /* streamed output that may be under way before the client grants more */
};

/* From the client. */
enum request {
    OP_HELLO = 1,     /* u32 version -> OP_HELLO: u32 version, u32 pid, u32 role, string features */
    OP_PING = 2,      /* any body -> OP_PONG: u64 now_ns */
    OP_EXEC = 3,      /* see struct exec_head -> OP_RESULT, with OP_OUTPUT before it when streaming */
    OP_STDIN = 4,     /* bytes; before OP_EXEC: kept for it (EXEC_STDIN_KEPT); after it: written to its stdin */
    OP_STDIN_END = 5, /* end of stdin of a running action; where none runs: forget what was kept */
    OP_SIGNAL = 6,    /* u32 signal, u32 whole tree (1) or leader only (0) -> OP_DONE or OP_ERROR */
    OP_RESIZE = 7,    /* u16 rows, u16 columns of a terminal -> no answer */
    OP_CREDIT = 8,    /* u32 bytes of streamed output that were taken -> no answer */
    OP_LIST = 9,      /* -> OP_ACTIONS: every action that is alive or ended unread */
    OP_ATTACH = 10,   /* u32 id of a background action -> its kept output, then live, as OP_OUTPUT, then OP_RESULT;
                         all under the id of the action */
    OP_DETACH = 11,   /* u32 id -> OP_DONE; the action goes on, its output is kept (head and tail) */
    OP_SHELL_OPEN = 12,  /* exec_head without argv: a persistent shell; id names it -> OP_DONE or OP_ERROR */
    OP_SHELL_RUN = 13,   /* u32 shell id, u32 timeout_ms, u64 output limit, string script -> OP_RESULT */
    OP_SHELL_CLOSE = 14, /* u32 shell id -> OP_DONE */
    OP_QUIET = 15,    /* u32 timeout_ms: kill everything but the agent -> OP_DONE, or OP_ERROR EBUSY */
    OP_PROCESSES = 16, /* -> OP_PROCESS_LIST: u32 n, n x (u32 pid, u32 parent, u32 action id or 0, string name) */
    OP_ENVIRONMENT = 17, /* -> OP_DATA: u64 their number, the variables that the agent was started with, KEY=VALUE each
                            ended by a zero; OP_ERROR EPERM in a jail, whose agent was started with the host's */
    OP_THAW = 18,     /* u64 nanoseconds since 1970, 32 to 512 random bytes -> OP_DONE: the clock is set and the
                         kernel's generator begun anew; OP_ERROR EPERM where the kernel is not the sandbox's own */

    /* Of files. Paths are absolute (others count from /), links in them are followed, the kernel's own links in /proc are
     * not. Any of these may be answered by OP_ERROR. */
    OP_READ = 32,     /* string path, u64 offset, u32 most bytes (<= REQUEST_LIMIT) -> OP_DATA: u64 size, bytes; fewer
                         than asked for: the end, which files of /proc know no other way (their size is 0) */
    OP_WRITE = 33,    /* struct write_head, string path (empty after the first piece), bytes: pieces of one file under one
                         id -> OP_DONE after the piece flagged WRITE_LAST. Pieces before it are not answered, but for the
                         first that fails: what comes after that is dropped, up to the last */
    OP_STAT = 34,     /* u32 follow, string path -> OP_ENTRY, with the last name of the path as its name */
    OP_DIR = 35,      /* string path -> OP_ENTRIES: u32 n, n x entry; sorted by name */
    OP_MKDIR = 36,    /* u32 mode, u32 parents too (and none is missed that is there), string path -> OP_DONE */
    OP_REMOVE = 37,   /* u32 whole trees too, string path -> OP_DONE */
    OP_RENAME = 38,   /* string from, string to -> OP_DONE; what is at `to` is replaced */
    OP_SYMLINK = 39,  /* string target, string path -> OP_DONE */
    OP_CHMOD = 40,    /* u32 mode, string path -> OP_DONE */
    OP_CHOWN = 41,    /* u32 uid, u32 gid, string path -> OP_DONE */
    OP_DIGEST = 42,   /* string path -> OP_DATA: u64 entries, 32 bytes SHA-256 of the tree there: see digest.h */
    OP_LOOK = 43,     /* u32 n (<= LOOK_MOST), n x (u32 kind alone, string path) -> OP_DATA: n x struct look; links are
                         followed, and what cannot be looked at, for whatever reason, is all zeros */
};

/* From the agent. */
enum answer {
    OP_RESULT = 64,   /* struct result_head, bytes of stdout, bytes of stderr */
    OP_OUTPUT = 65,   /* flags: 1 stdout, 2 stderr; bytes */
    OP_PONG = 66,
    OP_DONE = 67,
    OP_ERROR = 68,    /* u32 errno, string message */
    OP_DATA = 69,
    OP_ENTRY = 70,    /* entry: u32 mode, u32 uid, u32 gid, u64 size, i64 mtime_ns, u32 links, string name, string target */
    OP_ENTRIES = 71,
    OP_ACTIONS = 72,  /* u32 n, n x (u32 id, u32 pid, u8 state: 0 runs 1 ended, u64 started_ns, string first words) */
    OP_PROCESS_LIST = 73,
    OP_TAKEN = 74,    /* id 0, unasked, on serial lines only: u32 bytes that were read since the last time */
};

enum exec_flags {
    EXEC_STREAM = 1,      /* send output as it comes, under credit */
    EXEC_PTY = 2,         /* on a terminal of its own; implies EXEC_STREAM and one stream */
    EXEC_BACKGROUND = 4,  /* outlives its client's interest: answered at once by OP_DONE, listed, attachable */
    EXEC_STDIN_OPEN = 8,  /* stdin comes in OP_STDIN frames until OP_STDIN_END */
    EXEC_STDIN_KEPT = 16, /* stdin is what OP_STDIN frames with this id brought before */
    EXEC_MERGE = 32,      /* stderr goes where stdout goes */
    EXEC_ONE_SHOT = 64,   /* argv is `bash -c SCRIPT`: may be served by a shell that was spawned ahead */
};

/* The body of OP_EXEC: this head, then strings: user ("" is uid 0; a name, a number, either with ":group"), cwd ("" is /),
 * then argc argument strings, envc strings KEY=VALUE, then limits, then stdin_bytes bytes. */
struct exec_head {
    uint32_t flags;
    uint32_t timeout_ms; /* 0: none */
    uint64_t output_limit;
    uint16_t rows, columns;
    uint16_t argc, envc;
    uint16_t limits; /* n x struct exec_limit */
    uint16_t umask;
    uint32_t stdin_bytes;
} __attribute__((packed));

struct exec_limit {
    uint32_t resource; /* RLIMIT_* of this architecture */
    uint64_t soft, hard;
} __attribute__((packed));

enum end { END_EXIT = 0, END_SIGNAL = 1, END_TIMEOUT = 2, END_NOT_STARTED = 3 };
enum fault { FAULT_NONE = 0, FAULT_MISSING_PROGRAM = 1, FAULT_NOT_EXECUTABLE = 2, FAULT_MISSING_CWD = 3, FAULT_NO_USER = 4,
             FAULT_NO_ROOM = 5 };

struct result_head {
    int32_t code;   /* the shell's: 128+signal, 127 missing, 126 not runnable, 124 is never made up */
    uint8_t end;    /* enum end */
    uint8_t fault;  /* enum fault */
    uint16_t error; /* errno behind the fault */
    uint64_t received_ns, spawned_ns, exited_ns, sent_ns; /* the agent's CLOCK_MONOTONIC */
    uint64_t user_ns, system_ns, max_rss_kib;
    uint64_t stdout_total, stderr_total; /* all that was written, also what was cut */
    uint32_t stdout_bytes, stderr_bytes; /* what follows: head and tail */
} __attribute__((packed));

/* How something looks: equal as long as it is of the same kind, and of the same owner, rights, size and time of change
 * if more than its kind was asked for. */
struct look {
    uint32_t mode, uid; /* the mode with the kind in it */
    uint64_t size;
    int64_t mtime_ns;
} __attribute__((packed));

enum write_flags { WRITE_FIRST = 1, WRITE_LAST = 2, WRITE_PARENTS = 4, WRITE_IN_PLACE = 8 };

/* A file appears under its name with WRITE_LAST and not before, by rename; WRITE_IN_PLACE truncates and writes instead (and
 * so keeps hard links). If the last name is a link, the file it leads to is written. */
struct write_head {
    uint32_t flags;
    uint32_t mode;     /* of a new file; an existing one keeps its own */
    uint32_t uid, gid; /* owner of a new file, and of parents made for it; 0xffffffff: the agent's own */
} __attribute__((packed));

#endif
