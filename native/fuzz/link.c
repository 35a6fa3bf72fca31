/* Frames that come in whatever pieces: those that are taken are those that were sent, up to one that is too large. The
 * first byte says how large the pieces are, the rest is what is sent. */
#include "link.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "protocol.h"
#include "watch.h"

enum { MOST_SENT = 64 << 10 };

struct seen {
    uint64_t frames, sum;
};

static struct seen taken;

static void note(struct seen *seen, uint8_t op, uint8_t flags, uint32_t id, struct reader body)
{
    size_t size;
    const unsigned char *at = take_rest(&body, &size);
    seen->frames++;
    seen->sum = seen->sum * 31 + op + flags * 3u + id * 7u + size * 11;
    for (size_t i = 0; i < size; i++) seen->sum = seen->sum * 31 + at[i];
}

static void on_frame(uint8_t op, uint8_t flags, uint32_t id, struct reader body) { note(&taken, op, flags, id, body); }

/* What should be taken, read in one go. True if the last of it may not be. */
static bool expect(struct reader from, struct seen *seen)
{
    while (from.left >= HEAD_BYTES) {
        struct reader frame = from;
        uint32_t size = take_u32(&frame);
        uint8_t op = take_u8(&frame), flags = take_u8(&frame);
        take_u16(&frame);
        uint32_t id = take_u32(&frame);
        if (size > REQUEST_LIMIT) return true;
        if (size > frame.left) return false;
        note(seen, op, flags, id, (struct reader){frame.at, size, false});
        from = (struct reader){frame.at + size, frame.left - size, false};
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool prepared;
    int ends[2];
    struct seen expected = {0};
    if (size == 0 || size > MOST_SENT) return 0;
    size_t piece = data[0] + 1u;
    must(prepared || watches_prepare() == 0);
    prepared = true;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    must(link_start(ends[0], ends[0], on_frame) == 0);
    taken = (struct seen){0};
    for (size_t at = 1; at < size && link_is_open(); at += piece) {
        must(write(ends[1], data + at, size - at < piece ? size - at : piece) > 0);
        watches_wait(1);
    }
    bool too_large = expect(reader_of(data + 1, size - 1), &expected);
    must(taken.frames == expected.frames && taken.sum == expected.sum);
    must(link_is_open() != too_large);
    link_end();
    close(ends[1]);
    return 0;
}
