#define _GNU_SOURCE
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "place.h"
#include "sys.h"

enum { FIRST_ROOM = 16, ENTER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

int names_add(struct names *names, char *name)
{
    if (name && names->count == names->room) {
        size_t room = names->room ? 2 * names->room : FIRST_ROOM;
        char **grown = reallocarray(names->each, room, sizeof *grown);
        if (grown == NULL) {
            free(name);
            return -1;
        }
        names->each = grown;
        names->room = room;
    }
    if (name == NULL) return -1; /* strdup had no memory */
    names->each[names->count++] = name;
    return 0;
}

char *names_next(struct names *names)
{
    if (names->next == names->count) return NULL;
    char *name = names->each[names->next];
    names->each[names->next++] = NULL;
    return name;
}

void names_free(struct names *names)
{
    for (size_t i = names->next; i < names->count; i++) free(names->each[i]);
    free(names->each);
    *names = (struct names){0};
}

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right); /* as unsigned characters */
}

int names_list(int directory, size_t most, struct names *into)
{
    *into = (struct names){0};
    int fd = openat(directory, ".", ENTER);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        place_close(fd);
        return -1;
    }
    struct dirent *entry;
    while ((errno = 0, entry = readdir(stream))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (into->count < most && names_add(into, strdup(entry->d_name)) == 0) continue;
        errno = into->count < most ? ENOMEM : EOVERFLOW;
        break;
    }
    int error = errno;
    closedir(stream);
    if (error == 0) {
        if (into->count) qsort(into->each, into->count, sizeof *into->each, by_bytes);
        return 0;
    }
    names_free(into);
    errno = error;
    return -1;
}

/* `directory` becomes the deepest level; both it and `name` are taken over. */
static int push(struct walk *walk, int directory, char *name)
{
    struct stat about;
    if (walk->depth == walk->room) {
        size_t room = walk->room ? 2 * walk->room : FIRST_ROOM;
        struct level *grown = reallocarray(walk->levels, room, sizeof *grown);
        if (grown) {
            walk->levels = grown;
            walk->room = room;
        }
    }
    if (walk->depth == walk->room || fstat(directory, &about) < 0) {
        place_close(directory);
        free(name);
        return -1;
    }
    walk->levels[walk->depth++] = (struct level){.name = name, .device = about.st_dev, .inode = about.st_ino};
    place_close(walk->here);
    walk->here = directory;
    return 0;
}

int walk_begin(struct walk *walk, int directory)
{
    *walk = (struct walk){.here = -1};
    return push(walk, directory, NULL);
}

struct level *walk_level(struct walk *walk) { return &walk->levels[walk->depth - 1]; }

int walk_down(struct walk *walk, const char *name)
{
    int directory = openat(walk->here, name, ENTER);
    if (directory < 0) return -1;
    char *kept = strdup(name);
    if (kept) return push(walk, directory, kept);
    place_close(directory);
    return -1;
}

static void pop(struct walk *walk)
{
    struct level *level = walk_level(walk);
    names_free(&level->names);
    free(level->name);
    walk->depth--;
}

int walk_up(struct walk *walk)
{
    struct stat about;
    int above = openat(walk->here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (above < 0 || fstat(above, &about) < 0) {
        place_close(above);
        return -1;
    }
    const struct level *came_from = walk_level(walk) - 1;
    if (about.st_dev != came_from->device || about.st_ino != came_from->inode) {
        place_close(above);
        errno = ESTALE;
        return -1;
    }
    pop(walk);
    place_close(walk->here);
    walk->here = above;
    return 0;
}

void walk_end(struct walk *walk)
{
    while (walk->depth) pop(walk);
    free(walk->levels);
    place_close(walk->here);
    *walk = (struct walk){.here = -1};
}

void walk_where(const struct walk *walk, const char *name, char *into, size_t room)
{
    size_t used = 0;
    *into = 0;
    for (size_t i = 1; i <= walk->depth; i++) {
        const char *part = i < walk->depth ? walk->levels[i].name : name;
        if (part == NULL) continue;
        int length = snprintf(into + used, room - used, "%s%s", used ? "/" : "", part);
        if (length < 0 || (size_t)length >= room - used) return;
        used += (size_t)length;
    }
}
