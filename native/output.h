/* What an action printed: all of it while it fits, else its head and its tail, always with an exact count. Memory is
 * bounded by the limit and grows only as output comes.
 */
#ifndef EXCISE_OUTPUT_H
#define EXCISE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct output {
    uint64_t limit, total;
    struct buffer head; /* the first half of the limit */
    struct buffer tail; /* the last half: a ring once it is full */
    uint64_t turned;    /* where the ring's oldest byte is */
};

void output_start(struct output *output, uint64_t limit);
void output_add(struct output *output, const unsigned char *data, size_t size);
uint64_t output_kept(const struct output *output);
void output_put(const struct output *output, struct buffer *into);
void output_free(struct output *output);

#endif
