/* Bytes in and bytes out, checked: a reader that turns bad at the first thing that is not there and stays so, and a
 * buffer that grows and remembers having failed. Everything that parses what a client sent goes through these, so that
 * one fuzz target covers them. Little endian, as every machine we run on.
 */
#ifndef EXCISE_WIRE_H
#define EXCISE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const unsigned char *at;
    size_t left;
    bool bad; /* something was missing; everything taken since is zero or empty */
};

/* A string of the wire: not ended by a zero, and with none inside. */
struct text {
    const char *at;
    uint32_t length;
};

struct reader reader_of(const void *data, size_t size);
uint8_t take_u8(struct reader *from);
uint16_t take_u16(struct reader *from);
uint32_t take_u32(struct reader *from);
uint64_t take_u64(struct reader *from);
void take_bytes(struct reader *from, void *into, size_t size);
struct text take_text(struct reader *from);             /* u32 length and bytes; bad if a zero is inside */
const unsigned char *take_rest(struct reader *from, size_t *size);
bool text_copy(struct text from, char *into, size_t room); /* false if it does not fit with its closing zero */

struct buffer {
    unsigned char *data;
    size_t used, room;
    bool failed; /* no memory; what was put since is missing */
};

void put_u8(struct buffer *into, uint8_t value);
void put_u16(struct buffer *into, uint16_t value);
void put_u32(struct buffer *into, uint32_t value);
void put_u64(struct buffer *into, uint64_t value);
void put_bytes(struct buffer *into, const void *data, size_t size);
void put_text(struct buffer *into, const char *data, size_t size);
unsigned char *put_room(struct buffer *into, size_t size); /* uninitialised, to be filled; NULL if it failed */
void buffer_free(struct buffer *buffer);

/* A frame: `frame_begin` leaves room for the head, `frame_end` fills it in. Several may follow each other in one buffer. */
size_t frame_begin(struct buffer *into, uint8_t op, uint8_t flags, uint32_t id);
void frame_end(struct buffer *into, size_t began);

#endif
