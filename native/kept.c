#include "kept.h"

#include <errno.h>

enum { PLACES = 64, MOST = 1 << 30 };

static struct {
    uint32_t id;
    struct buffer data;
} kept[PLACES];

static int place_of(uint32_t id)
{
    for (int i = 0; i < PLACES; i++)
        if (kept[i].id == id) return i;
    return -1;
}

int kept_add(uint32_t id, const unsigned char *data, size_t size)
{
    int place = id == 0 ? -1 : place_of(id);
    if (id != 0 && place < 0) place = place_of(0);
    if (place < 0) return id == 0 ? EINVAL : EMFILE;
    kept[place].id = id;
    if (kept[place].data.used + size > MOST) return EFBIG;
    put_bytes(&kept[place].data, data, size);
    return kept[place].data.failed ? ENOMEM : 0;
}

void kept_drop(uint32_t id)
{
    struct buffer dropped = {0};
    kept_take(id, &dropped);
    buffer_free(&dropped);
}

void kept_take(uint32_t id, struct buffer *into)
{
    int place = place_of(id);
    if (place < 0 || id == 0) return;
    *into = kept[place].data;
    kept[place].id = 0;
    kept[place].data = (struct buffer){0};
}
