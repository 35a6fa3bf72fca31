#define _GNU_SOURCE
#include "remove.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "sys.h"
#include "walk.h"

enum { REFILLS = 1000 }; /* directories that somebody filled again while we emptied them */

int entry_remove(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0) return 0;
    if (errno != EISDIR) return -1;
    return unlinkat(parent, name, AT_REMOVEDIR);
}

/* Remove what can be removed at once; directories with something in them are left to be visited. */
static int sweep(struct walk *walk, char *where, size_t room)
{
    struct names all;
    struct level *level = walk_level(walk);
    int done = names_list(walk->here, SIZE_MAX, &all);
    char *name = NULL;
    while (done == 0 && (name = names_next(&all))) {
        if (entry_remove(walk->here, name) == 0 || errno == ENOENT) {
            free(name);
        } else if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) { /* the last: swapped in between */
            done = names_add(&level->names, name);
            name = NULL;
        } else {
            done = -1;
            break;
        }
    }
    int error = errno;
    if (done < 0) walk_where(walk, name, where, room);
    free(name);
    names_free(&all);
    level->listed = true;
    errno = error;
    return done;
}

/* Descend into `name`, or find that it needs no descending any more. */
static int visit(struct walk *walk, const char *name)
{
    if (walk_down(walk, name) == 0 || errno == ENOENT) return 0;
    if (errno != ENOTDIR && errno != ELOOP) return -1;
    return entry_remove(walk->here, name) == 0 || errno == ENOENT ? 0 : -1;
}

/* The directory we are in was emptied: go up and remove it, or down again if there is something in it. */
static int leave(struct walk *walk, int *refills)
{
    char *name = strdup(walk_level(walk)->name);
    if (name == NULL) return -1;
    int done = walk_up(walk);
    if (done == 0 && entry_remove(walk->here, name) < 0 && errno != ENOENT)
        done = (errno == ENOTEMPTY || errno == EEXIST) && ++*refills < REFILLS ? visit(walk, name) : -1;
    int error = errno;
    free(name);
    errno = error;
    return done;
}

static int step(struct walk *walk, int *refills, char *where, size_t room)
{
    struct level *level = walk_level(walk);
    if (!level->listed) return sweep(walk, where, room);
    char *name = names_next(&level->names);
    int done = name ? visit(walk, name) : leave(walk, refills);
    int error = errno;
    if (done < 0) walk_where(walk, name, where, room);
    free(name);
    errno = error;
    return done;
}

int tree_remove(int parent, const char *name, char *where, size_t room)
{
    struct walk walk;
    int refills = 0;
    *where = 0;
    if (walk_begin(&walk, parent) < 0) {
        walk_end(&walk);
        return -1;
    }
    walk_level(&walk)->listed = true;
    int done = names_add(&walk_level(&walk)->names, strdup(name));
    while (done == 0 && (walk.depth > 1 || walk_level(&walk)->names.next < walk_level(&walk)->names.count))
        done = step(&walk, &refills, where, room);
    int error = errno;
    walk_end(&walk);
    errno = error;
    return done;
}
