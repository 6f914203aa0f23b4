/* The server's doorbell loop: shared memory watched without Python, backing off while nothing moves. */
#include "shim.h"

#include <sched.h>
#include <time.h>

struct sg_doorbell {
    const volatile uint64_t *at; /* NULL: slot unused */
    uint64_t seen;
};

#define SPINS 64

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int moved(const struct sg_doorbell *bells, int n)
{
    for (int i = 0; i < n; i++) {
        const volatile uint64_t *at = __atomic_load_n(&bells[i].at, __ATOMIC_ACQUIRE);
        if (at && __atomic_load_n(at, __ATOMIC_ACQUIRE) != bells[i].seen)
            return i;
    }
    return -1;
}

/* Index of a doorbell that differs from `seen`, or -1 after timeout_ns. Sleeps grow from shortest_ns to
 * longest_ns, so that an idle server costs next to nothing. The caller updates `seen`; it may add slots and
 * raise *n meanwhile, but keeps a removed slot's memory mapped until this call has returned. */
EXPORT int stuntgpu_poll_doorbells(const struct sg_doorbell *bells, const volatile int *n, int64_t shortest_ns,
                                   int64_t longest_ns, int64_t timeout_ns)
{
    int64_t start = now_ns(), pause = shortest_ns;
    int spins = shortest_ns < longest_ns ? SPINS : 0; /* none for a server that has long been quiet */
    for (int spin = 0;; spin++) {
        int i = moved(bells, *n);
        if (i >= 0)
            return i;
        if (spin < spins) {
            sched_yield();
            continue;
        }
        if (now_ns() - start >= timeout_ns)
            return -1;
        struct timespec t = {pause / 1000000000, pause % 1000000000};
        nanosleep(&t, NULL);
        pause = pause + pause / 8 < longest_ns ? pause + pause / 8 : longest_ns;
    }
}
