/* The image's passwd and group, which the image writes: u16 length of the name asked for, the name, u16 length of passwd,
 * passwd, group. And a process's limits file, which the tag is read out of. */
#include "account.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tree.h"

/* A copy of exactly that size, so that a byte too far is seen. */
static char *part(struct reader *from, size_t size)
{
    char *copy = malloc(size);
    must(copy != NULL);
    take_bytes(from, copy, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct account account;
    struct reader from = reader_of(data, size);
    size_t lengths[3];
    for (int i = 0; i < 2; i++) {
        lengths[i] = take_u16(&from) % 256;
        if (i == 1) lengths[i] *= 8;
    }
    if (lengths[0] + lengths[1] > from.left) return 0;
    lengths[2] = from.left - lengths[0] - lengths[1];
    char *parts[3];
    for (int i = 0; i < 3; i++) parts[i] = part(&from, lengths[i]);
    struct text who = {parts[0], (uint32_t)lengths[0]};
    if (memchr(parts[0], 0, lengths[0]) == NULL && account_in(who, parts[1], lengths[1], parts[2], lengths[2], &account)) {
        must(account.group_count >= 0 && account.group_count <= GROUP_LIMIT);
        must(memchr(account.home, 0, sizeof account.home) != NULL);
    }
    tag_in(parts[1], lengths[1]);
    for (int i = 0; i < 3; i++) free(parts[i]);
    return 0;
}
