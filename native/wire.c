#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "protocol.h"

enum { FIRST_ROOM = 512 };

struct reader reader_of(const void *data, size_t size) { return (struct reader){data, size, false}; }

void take_bytes(struct reader *from, void *into, size_t size)
{
    if (from->bad || from->left < size) {
        from->bad = true;
        memset(into, 0, size);
        return;
    }
    if (size == 0) return;
    memcpy(into, from->at, size);
    from->at += size;
    from->left -= size;
}

uint8_t take_u8(struct reader *from)
{
    uint8_t value;
    take_bytes(from, &value, sizeof value);
    return value;
}

uint16_t take_u16(struct reader *from)
{
    uint16_t value;
    take_bytes(from, &value, sizeof value);
    return value;
}

uint32_t take_u32(struct reader *from)
{
    uint32_t value;
    take_bytes(from, &value, sizeof value);
    return value;
}

uint64_t take_u64(struct reader *from)
{
    uint64_t value;
    take_bytes(from, &value, sizeof value);
    return value;
}

struct text take_text(struct reader *from)
{
    struct text none = {"", 0};
    uint32_t length = take_u32(from);
    if (from->bad || from->left < length || (length && memchr(from->at, 0, length))) {
        from->bad = true;
        return none;
    }
    struct text text = {(const char *)from->at, length};
    from->at += length;
    from->left -= length;
    return text;
}

const unsigned char *take_rest(struct reader *from, size_t *size)
{
    const unsigned char *rest = from->at;
    *size = from->bad ? 0 : from->left;
    from->at += *size;
    from->left -= *size;
    return rest;
}

bool text_copy(struct text from, char *into, size_t room)
{
    if (from.length >= room) return false;
    memcpy(into, from.at, from.length);
    into[from.length] = 0;
    return true;
}

unsigned char *put_room(struct buffer *into, size_t size)
{
    if (into->failed) return NULL;
    if (size > into->room - into->used) {
        size_t room = into->room ? into->room : FIRST_ROOM;
        while (room - into->used < size && room < SIZE_MAX / 2) room *= 2;
        unsigned char *grown = room - into->used < size ? NULL : realloc(into->data, room);
        if (grown == NULL) {
            into->failed = true;
            return NULL;
        }
        into->data = grown;
        into->room = room;
    }
    unsigned char *at = into->data + into->used;
    into->used += size;
    return at;
}

void put_bytes(struct buffer *into, const void *data, size_t size)
{
    unsigned char *at = put_room(into, size);
    if (at && size) memcpy(at, data, size);
}

void put_u8(struct buffer *into, uint8_t value) { put_bytes(into, &value, sizeof value); }
void put_u16(struct buffer *into, uint16_t value) { put_bytes(into, &value, sizeof value); }
void put_u32(struct buffer *into, uint32_t value) { put_bytes(into, &value, sizeof value); }
void put_u64(struct buffer *into, uint64_t value) { put_bytes(into, &value, sizeof value); }

void put_text(struct buffer *into, const char *data, size_t size)
{
    put_u32(into, (uint32_t)size);
    put_bytes(into, data, size);
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

size_t frame_begin(struct buffer *into, uint8_t op, uint8_t flags, uint32_t id)
{
    size_t began = into->used;
    put_u32(into, 0);
    put_u8(into, op);
    put_u8(into, flags);
    put_u16(into, 0);
    put_u32(into, id);
    return began;
}

void frame_end(struct buffer *into, size_t began)
{
    if (into->failed) return;
    uint32_t size = (uint32_t)(into->used - began - HEAD_BYTES);
    memcpy(into->data + began, &size, sizeof size);
}
