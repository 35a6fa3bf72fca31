#include "output.h"

#include <string.h>

/* Both streams of one answer fit into what a client takes. */
enum { MOST = (1 << 29) - 4096 };

void output_start(struct output *output, uint64_t limit)
{
    *output = (struct output){.limit = limit < MOST ? limit : MOST};
}

static size_t least(uint64_t one, uint64_t other) { return (size_t)(one < other ? one : other); }

static void add_to_tail(struct output *output, const unsigned char *data, size_t size)
{
    uint64_t room = output->limit / 2;
    if (room == 0) return;
    if (size > room) {
        data += size - room;
        size = (size_t)room;
    }
    size_t fits = least(size, room - output->tail.used);
    put_bytes(&output->tail, data, fits);
    data += fits;
    size -= fits;
    while (size > 0 && !output->tail.failed) {
        size_t piece = least(size, room - output->turned);
        memcpy(output->tail.data + output->turned, data, piece);
        output->turned = (output->turned + piece) % room;
        data += piece;
        size -= piece;
    }
}

void output_add(struct output *output, const unsigned char *data, size_t size)
{
    output->total += size;
    size_t fits = least(size, output->limit - output->limit / 2 - output->head.used);
    put_bytes(&output->head, data, fits);
    if (size > fits) add_to_tail(output, data + fits, size - fits);
}

uint64_t output_kept(const struct output *output) { return output->head.used + output->tail.used; }

void output_put(const struct output *output, struct buffer *into)
{
    put_bytes(into, output->head.data, output->head.used);
    put_bytes(into, output->tail.data + output->turned, output->tail.used - output->turned);
    put_bytes(into, output->tail.data, output->turned);
}

void output_free(struct output *output)
{
    buffer_free(&output->head);
    buffer_free(&output->tail);
}
