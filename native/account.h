/* Who a command runs as: a name or a number of the image's own /etc/passwd and /etc/group, read without a C library's
 * name service, which a static program does not have.
 */
#ifndef EXCISE_ACCOUNT_H
#define EXCISE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

enum { GROUP_LIMIT = 64, HOME_BYTES = 512 };

struct account {
    bool own; /* whatever the agent is: nothing is changed */
    uint32_t uid, gid;
    uint32_t groups[GROUP_LIMIT];
    int group_count;
    char home[HOME_BYTES];
};

/* "" is the agent's own account; else a name or a number, either followed by ":group". False if there is no such. */
bool account_find(struct text who, struct account *account);

/* The same from the texts of the two files. */
bool account_in(struct text who, const char *passwd, size_t passwd_size, const char *group, size_t group_size,
    struct account *account);

#endif
