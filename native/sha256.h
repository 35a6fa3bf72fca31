/* SHA-256 as FIPS 180-4 has it. */
#ifndef EXCISE_SHA256_H
#define EXCISE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t taken; /* bytes so far; what does not fill a block waits in `block` */
    unsigned char block[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t size);
void sha256_end(struct sha256 *hash, unsigned char digest[SHA256_BYTES]);

#endif
