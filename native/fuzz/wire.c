/* The reader and the buffer under every order of use: nothing outside the input is read, what was bad stays bad, and what
 * is put comes back. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "message.h"
#include "protocol.h"

enum { MOST_BYTES = 64 };

/* One value out of `from`, into `into`: what is there now must read the same again. */
static void move(uint8_t what, struct reader *from, struct buffer *into)
{
    char text[MOST_BYTES];
    struct text taken;
    switch (what % 7) {
    case 0: put_u8(into, take_u8(from)); break;
    case 1: put_u16(into, take_u16(from)); break;
    case 2: put_u32(into, take_u32(from)); break;
    case 3: put_u64(into, take_u64(from)); break;
    case 4:
        taken = take_text(from);
        must(taken.length == 0 || memchr(taken.at, 0, taken.length) == NULL);
        put_text(into, taken.at, taken.length);
        if (text_copy(taken, text, sizeof text)) must(strlen(text) == taken.length);
        break;
    case 5:
        take_bytes(from, text, what % MOST_BYTES);
        put_bytes(into, text, what % MOST_BYTES);
        break;
    default:
        if (take_name(from, text, sizeof text)) must(strlen(text) < sizeof text);
        else must(from->bad);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader from = reader_of(data, size), script = from;
    struct buffer into = {0};
    size_t began = frame_begin(&into, 1, 2, 3), rest;
    bool was_bad = false;
    while (script.left) {
        size_t before = from.left;
        move(take_u8(&script), &from, &into);
        must(from.left <= before && from.at == data + size - from.left);
        must(!was_bad || from.bad);
        was_bad = from.bad;
    }
    take_rest(&from, &rest);
    must(from.bad ? rest == 0 : from.left == 0);
    frame_end(&into, began);
    struct reader again = reader_of(into.data, into.used);
    must(take_u32(&again) == into.used - HEAD_BYTES && take_u8(&again) == 1 && !again.bad);
    buffer_free(&into);
    return 0;
}
