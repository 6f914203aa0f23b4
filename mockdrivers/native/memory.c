/* The client's memory, as the server may read, write and re-back it.
 *
 * Copies go through process_vm_readv/writev on ourselves: a bad address is EFAULT, not a crash. Where
 * that call is forbidden (some sandboxes) plain copies are all there is.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096u
#define CHUNK (16 * PAGE)
#define MEMFD_MARK "/memfd:stuntgpu-user" /* how re-backed pages show in /proc/self/maps */

static bool any_rebacked;

static int copy(bool in, void *mine, uint64_t theirs, size_t size)
{
    struct iovec local = {mine, size}, remote = {(void *)(uintptr_t)theirs, size};
    ssize_t n = in ? process_vm_readv(getpid(), &local, 1, &remote, 1, 0)
                   : process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
    if (n == (ssize_t)size)
        return 0;
    if (n >= 0 || (errno != ENOSYS && errno != EPERM))
        return -EFAULT;
    if (in)
        memcpy(mine, remote.iov_base, size);
    else
        memcpy(remote.iov_base, mine, size);
    return 0;
}

int sg_peek(uint64_t address, void *to, size_t size)
{
    return size ? copy(true, to, address, size) : 0;
}

int sg_poke(uint64_t address, const void *from, size_t size)
{
    return size ? copy(false, (void *)(uintptr_t)from, address, size) : 0;
}

/* Calls row() for each line of /proc/self/maps until it returns false. Uses no malloc: it also runs
 * in the child between fork and exec. */
static int each_map(bool (*row)(char *line, void *context), void *context)
{
    char buffer[8192];
    size_t used = 0;
    ssize_t n;
    int fd = sg_real()->open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while ((n = sg_real()->read(fd, buffer + used, sizeof buffer - 1 - used)) > 0) {
        char *line = buffer, *end;
        used += (size_t)n;
        buffer[used] = 0;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            if (!row(line, context))
                goto out;
            line = end + 1;
        }
        used -= (size_t)(line - buffer);
        memmove(buffer, line, used);
        if (used == sizeof buffer - 1)
            used = 0; /* a line longer than the buffer: no path of ours */
    }
out:
    sg_real()->close(fd);
    return 0;
}

struct overlap {
    uint64_t lo, hi;
    char *out;
    size_t room, used;
};

static bool add_overlap(char *line, void *context)
{
    struct overlap *want = context;
    uint64_t lo, hi;
    size_t n = strlen(line);
    if (sscanf(line, "%" SCNx64 "-%" SCNx64, &lo, &hi) != 2 || hi <= want->lo)
        return true;
    if (lo >= want->hi || want->used + n + 1 > want->room)
        return false;
    memcpy(want->out + want->used, line, n);
    want->out[want->used + n] = '\n';
    want->used += n + 1;
    return true;
}

int sg_maps(uint64_t address, uint64_t size, char *out, size_t room, size_t *used)
{
    struct overlap want = {address, address + size, out, room, 0};
    int error = each_map(add_overlap, &want);
    *used = want.used;
    return error;
}

/* Copies [from, from+size) to `to`, leaving pages of zeros alone: fresh memory reads as zeros. */
static int copy_nonzero(char *to, uint64_t from, uint64_t size)
{
    static const char zeros[PAGE];
    char chunk[CHUNK];
    for (uint64_t at = 0; at < size; at += CHUNK) {
        size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        int error = sg_peek(from + at, chunk, n);
        if (error)
            return error;
        for (size_t page = 0; page < n; page += PAGE) {
            size_t m = n - page < PAGE ? n - page : PAGE;
            if (memcmp(chunk + page, zeros, m))
                memcpy(to + at + page, chunk + page, m);
        }
    }
    return 0;
}

int sg_reback(uint64_t address, uint64_t size, int prot, int fd, uint64_t offset)
{
    struct sg_real *libc = sg_real();
    char *fresh = libc->mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (fresh == MAP_FAILED)
        return -errno;
    int error = copy_nonzero(fresh, address, size);
    libc->munmap(fresh, size);
    if (error)
        return error;
    void *at = libc->mmap((void *)(uintptr_t)address, size, prot, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    if (at == MAP_FAILED)
        return -errno;
    any_rebacked = true;
    return 0;
}

int sg_restore(uint64_t address, uint64_t size, int prot)
{
    struct sg_real *libc = sg_real();
    char *fresh = libc->mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return -errno;
    int error = copy_nonzero(fresh, address, size);
    if (!error && mprotect(fresh, size, prot))
        error = -errno;
    if (!error && mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)address) == MAP_FAILED)
        error = -errno;
    if (error)
        libc->munmap(fresh, size);
    return error;
}

static bool make_private(char *line, void *context)
{
    uint64_t lo, hi;
    char perms[5];
    (void)context;
    if (!strstr(line, MEMFD_MARK) || sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &lo, &hi, perms) != 3)
        return true;
    int prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0)
        | (perms[2] == 'x' ? PROT_EXEC : 0);
    sg_restore(lo, hi - lo, prot);
    return true;
}

/* A child must not share its parent's heap: what was private before re-backing is private again. */
void sg_memory_after_fork(void)
{
    if (any_rebacked)
        each_map(make_private, NULL);
    any_rebacked = false;
}
