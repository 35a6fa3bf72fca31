#define _GNU_SOURCE
#include "thaw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "spare.h"

enum { SEED_LEAST = 32, SEED_MOST = 512, NS = 1000000000 };

struct pool {
    int bits, bytes; /* struct rand_pool_info */
    unsigned char data[SEED_MOST];
};

static int reseed(const unsigned char *seed, size_t size)
{
    struct pool pool = {.bits = (int)size * 8, .bytes = (int)size};
    memcpy(pool.data, seed, size);
    int random = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
    if (random < 0) return -1;
    int done = ioctl(random, RNDADDENTROPY, &pool);
    if (done == 0) done = ioctl(random, RNDRESEEDCRNG);
    close(random);
    explicit_bzero(&pool, sizeof pool);
    return done;
}

void thaw(uint32_t id, struct reader body)
{
    uint64_t now = take_u64(&body);
    size_t size;
    const unsigned char *seed = take_rest(&body, &size);
    struct timespec clock = {.tv_sec = (time_t)(now / NS), .tv_nsec = (long)(now % NS)};
    if (body.bad || size < SEED_LEAST || size > SEED_MOST) {
        answer_error(id, EINVAL, "thaw");
        return;
    }
    spare_kill();
    if (clock_settime(CLOCK_REALTIME, &clock) < 0) answer_error(id, errno, "the clock");
    else if (reseed(seed, size) < 0) answer_error(id, errno, "the kernel's generator of random numbers");
    else answer_done(id);
}
