/* Which descriptors are devices, and what is done with them.
 *
 * A device's descriptor is really open on its stand-in file in the tree, so dup, close-on-exec, select
 * and fstat work by themselves. Every use checks that the number still names that file: descriptors
 * closed behind our back (close_range, fclose, a vfork child) are noticed then.
 */
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_FD 65536
#define SG_IOC_SIZE(request) ((request) >> 16 & 0x3FFF)
#define SG_IOC_WRITE(request) ((request) >> 30 & 1) /* user to kernel */
#define SG_IOC_READ(request) ((request) >> 31 & 1)

struct file {
    const struct sg_node *node;
    uint32_t id; /* the server's */
    uint64_t generation;
    pid_t process; /* who opened it: a device's context is not inherited by fork */
    short poll_mask; /* what poll always shows; 0: never ready */
    unsigned references; /* descriptors plus calls under way */
};

static struct file *table[MAX_FD];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Around fork, so that no child finds the table locked by a thread it does not have. */
void sg_files_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sg_files_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static bool in_range(int fd)
{
    return fd >= 0 && fd < MAX_FD;
}

static void release(struct file *file)
{
    pthread_mutex_lock(&lock);
    bool last = --file->references == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    struct sg_call call = {.head = {.op = SG_CLOSE, .file = file->id}};
    if (file->generation == sg_generation())
        sg_call(&call, file->generation);
    free(file);
}

static struct file *exchange(int fd, struct file *fresh)
{
    pthread_mutex_lock(&lock);
    struct file *old = table[fd];
    table[fd] = fresh;
    if (fresh)
        fresh->references++;
    pthread_mutex_unlock(&lock);
    return old;
}

static bool names_node(int fd, const struct sg_node *node)
{
    struct stat st;
    return !sg_real()->fstat(fd, &st) && st.st_ino == node->ino && st.st_dev == node->dev;
}

/* The device behind fd with a reference added, or NULL. */
static struct file *get(int fd)
{
    if (!in_range(fd) || !table[fd] || !sg_owner())
        return NULL;
    pthread_mutex_lock(&lock);
    struct file *file = table[fd];
    if (file)
        file->references++;
    pthread_mutex_unlock(&lock);
    if (file && !names_node(fd, file->node)) {
        release(file);
        sg_file_closed(fd);
        return NULL;
    }
    return file;
}

int sg_file_opened(int fd)
{
    struct stat st;
    int saved = errno;
    if (fd < 0 || !sg_owner() || !sg_tree())
        return fd;
    sg_file_closed(fd); /* whatever had this number before is gone */
    if (sg_real()->fstat(fd, &st))
        return fd;
    const struct sg_node *node = sg_node_of(st.st_dev, st.st_ino);
    errno = saved;
    if (!node)
        return fd;
    struct sg_call call = {.head = {.op = SG_OPEN}, .in = node->path, .in_size = strlen(node->path)};
    int64_t result = in_range(fd) ? sg_call(&call, 0) : -EMFILE;
    struct file *file = result < 0 ? NULL : malloc(sizeof *file);
    if (!file) {
        sg_real()->close(fd);
        errno = result < 0 ? (int)-result : ENOMEM;
        return -1;
    }
    *file = (struct file){node, (uint32_t)result, sg_generation(), getpid(), (short)call.head.a[0], 0};
    exchange(fd, file);
    return fd;
}

bool sg_file_known(int fd)
{
    return in_range(fd) && table[fd];
}

int sg_file_id(int fd)
{
    struct file *file = get(fd);
    int id = file && file->generation == sg_generation() ? (int)file->id : -EBADF;
    if (file)
        release(file);
    return id;
}

void sg_file_closed(int fd)
{
    if (!in_range(fd) || !table[fd] || !sg_owner())
        return;
    int saved = errno;
    struct file *old = exchange(fd, NULL);
    if (old)
        release(old);
    errno = saved;
}

void sg_file_duped(int from, int to)
{
    if (to < 0 || from == to)
        return;
    sg_file_closed(to);
    struct file *file = in_range(to) ? get(from) : NULL;
    if (file) {
        exchange(to, file);
        release(file);
    }
}

/* -EBADF when another process opened the file, -EIO when its server has gone. */
static int64_t ask(struct file *file, struct sg_call *call)
{
    if (file->process != getpid())
        return -EBADF;
    call->head.file = file->id;
    return sg_call(call, file->generation);
}

static int finish(int64_t result)
{
    if (result >= 0)
        return (int)result;
    errno = (int)-result;
    return -1;
}

static int64_t run_ioctl(struct file *file, unsigned long request, void *arg)
{
    char in[0x4000], out[0x4000];
    uint32_t number = (uint32_t)request;
    size_t size = SG_IOC_SIZE(number), in_size = SG_IOC_WRITE(number) ? size : 0;
    if (in_size && sg_peek((uintptr_t)arg, in, in_size))
        return -EFAULT;
    struct sg_call call = {.head = {.op = SG_IOCTL, .a = {number, (uintptr_t)arg, 0, 0}},
                           .in = in, .in_size = in_size, .out = out, .out_size = sizeof out};
    int64_t result = ask(file, &call);
    size_t back = call.out_used < size ? call.out_used : size;
    if (SG_IOC_READ(number) && back && sg_poke((uintptr_t)arg, out, back))
        return -EFAULT;
    return result;
}

int sg_file_ioctl(int fd, unsigned long request, void *arg, bool *ours)
{
    struct file *file = get(fd);
    *ours = file != NULL;
    if (!file)
        return 0;
    int64_t result = run_ioctl(file, request, arg);
    release(file);
    return finish(result);
}

void *sg_file_mmap(void *address, size_t length, int prot, int flags, int fd, uint64_t offset, bool *ours)
{
    struct file *file = flags & MAP_ANONYMOUS ? NULL : get(fd);
    *ours = file != NULL;
    if (!file)
        return NULL;
    struct sg_call call = {.head = {.op = SG_MMAP, .a = {length, (uint64_t)prot, (uint64_t)flags, offset}}};
    int64_t result = ask(file, &call);
    release(file);
    if (result >= 0 && call.fd < 0)
        result = -ENODEV;
    if (result < 0) {
        errno = (int)-result;
        return MAP_FAILED;
    }
    void *at = sg_real()->mmap(address, length, prot, flags, call.fd, (off_t)call.head.a[0]);
    int saved = errno;
    sg_real()->close(call.fd);
    errno = saved;
    return at;
}

/* offset NULL: the descriptor's own position, which the kernel keeps on the stand-in file. */
ssize_t sg_file_read(int fd, void *to, size_t size, off64_t *offset, bool *ours)
{
    struct file *file = get(fd);
    *ours = file != NULL;
    if (!file)
        return 0;
    char room[SG_MAX_PAYLOAD];
    off64_t at = offset ? *offset : lseek64(fd, 0, SEEK_CUR);
    size_t want = size < sizeof room ? size : sizeof room;
    struct sg_call call = {.head = {.op = SG_READ, .a = {(uint64_t)at, want, 0, 0}}, .out = room, .out_size = want};
    int64_t result = ask(file, &call);
    release(file);
    if (result >= 0 && sg_poke((uintptr_t)to, room, call.out_used))
        result = -EFAULT;
    if (result < 0)
        return finish(result);
    if (!offset)
        lseek64(fd, (off64_t)call.out_used, SEEK_CUR);
    return (ssize_t)call.out_used;
}

ssize_t sg_file_write(int fd, const void *from, size_t size, off64_t *offset, bool *ours)
{
    struct file *file = get(fd);
    *ours = file != NULL;
    if (!file)
        return 0;
    char room[SG_MAX_PAYLOAD];
    off64_t at = offset ? *offset : lseek64(fd, 0, SEEK_CUR);
    size_t want = size < sizeof room ? size : sizeof room;
    int64_t result = sg_peek((uintptr_t)from, room, want);
    if (!result) {
        struct sg_call call = {.head = {.op = SG_WRITE, .a = {(uint64_t)at, 0, 0, 0}}, .in = room, .in_size = want};
        result = ask(file, &call);
    }
    release(file);
    if (result > 0 && !offset)
        lseek64(fd, (off64_t)result, SEEK_CUR);
    return finish(result);
}

short sg_file_poll_mask(int fd, bool *ours)
{
    struct file *file = get(fd);
    *ours = file != NULL;
    if (!file)
        return 0;
    short mask = file->poll_mask;
    release(file);
    return mask;
}
