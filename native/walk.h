/* Down and up a tree with one descriptor however deep it is, without recursion, and never out of it: links are not
 * followed, and going up arrives where we came down from or fails with ESTALE, whoever moves directories meanwhile.
 */
#ifndef EXCISE_WALK_H
#define EXCISE_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct names {
    char **each;
    size_t count, room, next;
};

/* All names in a directory but `.` and `..`, sorted by their bytes. EOVERFLOW if there are more than `most`. */
int names_list(int directory, size_t most, struct names *into);
/* The next one, to be freed by the caller; NULL at the end. */
char *names_next(struct names *names);
int names_add(struct names *names, char *name); /* takes it over, also when it fails */
void names_free(struct names *names);

struct level {
    char *name; /* in the level above; NULL for the first */
    dev_t device;
    ino_t inode;
    bool listed;
    struct names names; /* what is still to be visited */
};

struct walk {
    int here;
    struct level *levels;
    size_t depth, room;
};

/* Start at `directory`, which the walk takes over. */
int walk_begin(struct walk *walk, int directory);
int walk_down(struct walk *walk, const char *name); /* ENOTDIR or ELOOP: it is no directory (any more) */
int walk_up(struct walk *walk);
struct level *walk_level(struct walk *walk);
void walk_end(struct walk *walk);

/* Where the walk is, for messages: names from its start, and `name` if not NULL. Cut if it does not fit. */
void walk_where(const struct walk *walk, const char *name, char *into, size_t room);

#endif
