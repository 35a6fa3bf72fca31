#include "sha256.h"

#include <string.h>

static const uint32_t BEGIN[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t right(uint32_t word, int by) { return word >> by | word << (32 - by); }

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void schedule(uint32_t words[64], const unsigned char *block)
{
    for (int i = 0; i < 16; i++) words[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t old = words[i - 15], young = words[i - 2];
        uint32_t low = right(old, 7) ^ right(old, 18) ^ old >> 3;
        uint32_t high = right(young, 17) ^ right(young, 19) ^ young >> 10;
        words[i] = words[i - 16] + low + words[i - 7] + high;
    }
}

/* Eight variables instead of an array, so that they stay in registers. */
static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t words[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    schedule(words, block);
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t first = h + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + choice + ROUND[i] + words[i];
        uint32_t second = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + majority;
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    const uint32_t now[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) state[i] += now[i];
}

void sha256_begin(struct sha256 *hash)
{
    memcpy(hash->state, BEGIN, sizeof BEGIN);
    hash->taken = 0;
}

void sha256_add(struct sha256 *hash, const void *data, size_t size)
{
    const unsigned char *at = data;
    size_t waiting = hash->taken % SHA256_BLOCK;
    hash->taken += size;
    if (waiting && waiting + size >= SHA256_BLOCK) {
        size_t fill = SHA256_BLOCK - waiting;
        memcpy(hash->block + waiting, at, fill);
        compress(hash->state, hash->block);
        at += fill;
        size -= fill;
        waiting = 0;
    }
    if (waiting == 0)
        for (; size >= SHA256_BLOCK; at += SHA256_BLOCK, size -= SHA256_BLOCK) compress(hash->state, at);
    if (size) memcpy(hash->block + waiting, at, size);
}

void sha256_end(struct sha256 *hash, unsigned char digest[SHA256_BYTES])
{
    static const unsigned char padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = hash->taken * 8;
    size_t waiting = hash->taken % SHA256_BLOCK;
    sha256_add(hash, padding, (waiting < 56 ? 56 : 120) - waiting);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 32; i++) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
