#define _GNU_SOURCE
#include "account.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LIMIT = 1 << 20, FIELDS = 7 };

struct line {
    struct text fields[FIELDS];
    int count;
};

static bool same(struct text one, struct text other)
{
    return one.length == other.length && memcmp(one.at, other.at, one.length) == 0;
}

static bool number(struct text from, uint32_t *value)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < from.length; i++) {
        if (from.at[i] < '0' || from.at[i] > '9') return false;
        sum = sum * 10 + (uint64_t)(from.at[i] - '0');
        if (sum >= UINT32_MAX) return false; /* the last one means "leave it" to the kernel */
    }
    *value = (uint32_t)sum;
    return from.length > 0;
}

/* Cut the first piece off that ends with `end`. */
static struct text cut(struct text *rest, char end)
{
    const char *at = memchr(rest->at, end, rest->length);
    struct text piece = {rest->at, at ? (uint32_t)(at - rest->at) : rest->length};
    uint32_t gone = at ? piece.length + 1 : piece.length;
    rest->at += gone;
    rest->length -= gone;
    return piece;
}

static bool next_line(struct text *rest, struct line *line)
{
    if (rest->length == 0) return false;
    struct text text = cut(rest, '\n');
    line->count = 0;
    while (line->count < FIELDS) {
        bool last = memchr(text.at, ':', text.length) == NULL;
        line->fields[line->count++] = cut(&text, ':');
        if (last) break;
    }
    return true;
}

static bool in_passwd(struct text who, struct text passwd, struct account *account, struct text *name)
{
    struct line line;
    uint32_t uid, wanted = 0;
    bool by_number = number(who, &wanted);
    while (next_line(&passwd, &line)) {
        if (line.count < 6 || !number(line.fields[2], &uid)) continue;
        if (by_number ? uid != wanted : !same(line.fields[0], who)) continue;
        if (!number(line.fields[3], &account->gid)) continue;
        account->uid = uid;
        *name = line.fields[0];
        return text_copy(line.fields[5], account->home, sizeof account->home);
    }
    if (!by_number) return false;
    account->uid = wanted; /* a number needs no entry, as in other containers */
    account->gid = 0;
    strcpy(account->home, "/");
    return true;
}

static bool has_member(struct text members, struct text name)
{
    while (members.length > 0)
        if (same(cut(&members, ','), name)) return true;
    return false;
}

static void groups_of(struct text name, struct text group, struct account *account)
{
    struct line line;
    uint32_t gid;
    while (name.length > 0 && account->group_count < GROUP_LIMIT && next_line(&group, &line))
        if (line.count >= 4 && number(line.fields[2], &gid) && has_member(line.fields[3], name))
            account->groups[account->group_count++] = gid;
}

static bool group_named(struct text wanted, struct text group, uint32_t *gid)
{
    struct line line;
    if (number(wanted, gid)) return true;
    while (next_line(&group, &line))
        if (line.count >= 3 && same(line.fields[0], wanted) && number(line.fields[2], gid)) return true;
    return false;
}

bool account_in(struct text who, const char *passwd, size_t passwd_size, const char *group, size_t group_size,
    struct account *account)
{
    struct text groups = {group, (uint32_t)group_size}, name = {"", 0}, rest = who;
    *account = (struct account){0};
    bool with_group = memchr(who.at, ':', who.length) != NULL;
    struct text user = cut(&rest, ':');
    if (!in_passwd(user, (struct text){passwd, (uint32_t)passwd_size}, account, &name)) return false;
    if (with_group) return group_named(rest, groups, &account->gid);
    groups_of(name, groups, account);
    return true;
}

/* An image decides what stands at this path: only a plain file is read, and nothing is waited for. */
static size_t read_file(const char *path, char **data)
{
    struct stat status;
    size_t used = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *data = malloc(FILE_LIMIT);
    if (file >= 0 && *data && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        ssize_t got;
        while (used < FILE_LIMIT && (got = read(file, *data + used, FILE_LIMIT - used)) > 0) used += (size_t)got;
    }
    if (file >= 0) close(file);
    return used;
}

bool account_find(struct text who, struct account *account)
{
    char *passwd, *group;
    if (who.length == 0) {
        *account = (struct account){.own = true, .home = "/root"};
        return true;
    }
    size_t passwd_size = read_file("/etc/passwd", &passwd), group_size = read_file("/etc/group", &group);
    bool found = account_in(who, passwd ? passwd : "", passwd_size, group ? group : "", group_size, account);
    free(passwd);
    free(group);
    return found;
}
