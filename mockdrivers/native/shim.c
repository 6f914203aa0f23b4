/* The interposed functions: look the path up in the tree, or hand a device's descriptor to files.c.
 *
 * Two doors: under LD_PRELOAD the program's calls land here by name; a runtime that loads this library
 * with dlopen calls the stuntgpu_ twins at the end, after stuntgpu_connect.
 *
 * Not seen: system calls made without the C library, static programs, calls inside the C library (so
 * fopen, opendir and realpath are interposed themselves), and device descriptors that came over a socket
 * or through exec.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NEEDS_MODE(flags) (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE)

__attribute__((constructor)) static void start(void)
{
    const char *server = getenv("STUNTGPU_SERVER"), *tree = getenv("STUNTGPU_TREE");
    int saved = errno;
    sg_real();
    sg_link_init();
    if (server && tree) {
        sg_server_set(server, true);
        sg_tree_load(tree);
    }
    errno = saved;
}

/* ---- open ---- */

static mode_t mode_argument(int flags, va_list arguments)
{
    return NEEDS_MODE(flags) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name) \
    EXPORT int name(const char *path, int flags, ...) \
    { \
        char buffer[SG_PATH_MAX]; \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_argument(flags, arguments); \
        va_end(arguments); \
        return sg_file_opened(sg_real()->name(sg_redirect(path, buffer), flags, mode)); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    EXPORT int name(int folder, const char *path, int flags, ...) \
    { \
        char buffer[SG_PATH_MAX]; \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_argument(flags, arguments); \
        va_end(arguments); \
        return sg_file_opened(sg_real()->name(folder, sg_redirect(path, buffer), flags, mode)); \
    }
OPENAT(openat)
OPENAT(openat64)

/* What compilers call instead when _FORTIFY_SOURCE is on. */
EXPORT int __open_2(const char *path, int flags) { return open(path, flags); }
EXPORT int __open64_2(const char *path, int flags) { return open64(path, flags); }
EXPORT int __openat_2(int folder, const char *path, int flags) { return openat(folder, path, flags); }
EXPORT int __openat64_2(int folder, const char *path, int flags) { return openat64(folder, path, flags); }

EXPORT FILE *fopen(const char *path, const char *mode)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->fopen(sg_redirect(path, buffer), mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->fopen64(sg_redirect(path, buffer), mode);
}

EXPORT DIR *opendir(const char *path)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->opendir(sg_redirect(path, buffer));
}

/* ---- stat: stand-in files show as the devices they stand for ---- */

#define SHOW_DEVICE(st) \
    do { \
        const struct sg_node *node = sg_node_of((st)->st_dev, (st)->st_ino); \
        if (node) { \
            (st)->st_mode = ((st)->st_mode & ~(mode_t)S_IFMT) | S_IFCHR; \
            (st)->st_rdev = node->rdev; \
        } \
    } while (0)

#define STAT(name, type) \
    EXPORT int name(const char *restrict path, struct type *restrict st) \
    { \
        char buffer[SG_PATH_MAX]; \
        int result = sg_real()->name(sg_redirect(path, buffer), st); \
        if (!result) \
            SHOW_DEVICE(st); \
        return result; \
    }
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define FSTAT(name, type) \
    EXPORT int name(int fd, struct type *st) \
    { \
        int result = sg_real()->name(fd, st); \
        if (!result) \
            SHOW_DEVICE(st); \
        return result; \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATAT(name, type) \
    EXPORT int name(int folder, const char *restrict path, struct type *restrict st, int flags) \
    { \
        char buffer[SG_PATH_MAX]; \
        int result = sg_real()->name(folder, sg_redirect(path, buffer), st, flags); \
        if (!result) \
            SHOW_DEVICE(st); \
        return result; \
    }
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

/* Programs linked against a glibc older than 2.33 reach stat by these names. */
#define XSTAT(name, target, type) \
    EXPORT int name(int version, const char *path, struct type *st) \
    { \
        (void)version; \
        return target(path, st); \
    }
XSTAT(__xstat, stat, stat)
XSTAT(__xstat64, stat64, stat64)
XSTAT(__lxstat, lstat, stat)
XSTAT(__lxstat64, lstat64, stat64)
EXPORT int __fxstat(int version, int fd, struct stat *st) { return (void)version, fstat(fd, st); }
EXPORT int __fxstat64(int version, int fd, struct stat64 *st) { return (void)version, fstat64(fd, st); }

EXPORT int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
    char buffer[SG_PATH_MAX];
    int result = sg_real()->statx(folder, sg_redirect(path, buffer), flags, mask, st);
    if (result)
        return result;
    const struct sg_node *node = sg_node_of(makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino);
    if (node) {
        st->stx_mode = (uint16_t)((st->stx_mode & ~S_IFMT) | S_IFCHR);
        st->stx_rdev_major = major(node->rdev);
        st->stx_rdev_minor = minor(node->rdev);
    }
    return 0;
}

/* ---- other looks at paths ---- */

EXPORT int access(const char *path, int mode)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->access(sg_redirect(path, buffer), mode);
}

EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->faccessat(folder, sg_redirect(path, buffer), mode, flags);
}

EXPORT ssize_t readlink(const char *restrict path, char *restrict to, size_t size)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->readlink(sg_redirect(path, buffer), to, size);
}

EXPORT ssize_t readlinkat(int folder, const char *restrict path, char *restrict to, size_t size)
{
    char buffer[SG_PATH_MAX];
    return sg_real()->readlinkat(folder, sg_redirect(path, buffer), to, size);
}

EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
    char buffer[SG_PATH_MAX];
    const char *where = sg_redirect(path, buffer), *tree = sg_tree();
    char *found = sg_real()->realpath(where, resolved);
    size_t n = tree ? strlen(tree) : 0;
    if (found && where != path && !strncmp(found, tree, n) && found[n] == '/')
        memmove(found, found + n, strlen(found + n) + 1);
    return found;
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
    return size < SG_PATH_MAX ? (errno = ERANGE, NULL) : realpath(path, resolved);
}

EXPORT char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

/* ---- descriptors ---- */

EXPORT int close(int fd)
{
    if (sg_is_link(fd) && sg_owner()) { /* a program that closes every number it can think of */
        errno = EBADF;
        return -1;
    }
    sg_file_closed(fd);
    return sg_real()->close(fd);
}

EXPORT int dup(int fd)
{
    int copy = sg_real()->dup(fd);
    sg_file_duped(fd, copy);
    return copy;
}

EXPORT int dup2(int fd, int to)
{
    int copy = sg_real()->dup2(fd, to);
    sg_file_duped(fd, copy);
    return copy;
}

EXPORT int dup3(int fd, int to, int flags)
{
    int copy = sg_real()->dup3(fd, to, flags);
    sg_file_duped(fd, copy);
    return copy;
}

#define FCNTL(name) \
    EXPORT int name(int fd, int command, ...) \
    { \
        va_list arguments; \
        va_start(arguments, command); \
        void *argument = va_arg(arguments, void *); \
        va_end(arguments); \
        int result = sg_real()->name(fd, command, argument); \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
            sg_file_duped(fd, result); \
        return result; \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT ssize_t read(int fd, void *to, size_t size)
{
    bool ours = false;
    ssize_t n = sg_file_known(fd) ? sg_file_read(fd, to, size, NULL, &ours) : 0;
    return ours ? n : sg_real()->read(fd, to, size);
}

EXPORT ssize_t write(int fd, const void *from, size_t size)
{
    bool ours = false;
    ssize_t n = sg_file_known(fd) ? sg_file_write(fd, from, size, NULL, &ours) : 0;
    return ours ? n : sg_real()->write(fd, from, size);
}

#define POSITIONED(name, buffer, call, offset_type) \
    EXPORT ssize_t name(int fd, buffer, size_t size, offset_type offset) \
    { \
        bool ours = false; \
        off64_t at = offset; \
        ssize_t n = sg_file_known(fd) ? call(fd, memory, size, &at, &ours) : 0; \
        return ours ? n : sg_real()->name(fd, memory, size, offset); \
    }
POSITIONED(pread, void *memory, sg_file_read, off_t)
POSITIONED(pread64, void *memory, sg_file_read, off64_t)
POSITIONED(pwrite, const void *memory, sg_file_write, off_t)
POSITIONED(pwrite64, const void *memory, sg_file_write, off64_t)

/* ioctls the kernel answers above the driver: they act on the descriptor. */
static bool is_generic(unsigned long request)
{
    switch (request) {
    case 0x5450: /* FIONCLEX */
    case 0x5451: /* FIOCLEX */
    case 0x5421: /* FIONBIO */
    case 0x5452: /* FIOASYNC */
        return true;
    }
    return false;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    bool ours = false;
    int result = 0;
    if (sg_file_known(fd) && !is_generic(request))
        result = sg_file_ioctl(fd, request, argument, &ours);
    return ours ? result : sg_real()->ioctl(fd, request, argument);
}

#define MMAP(name, offset_type) \
    EXPORT void *name(void *address, size_t length, int prot, int flags, int fd, offset_type offset) \
    { \
        bool ours = false; \
        void *at = NULL; \
        if (sg_file_known(fd)) \
            at = sg_file_mmap(address, length, prot, flags, fd, (uint64_t)offset, &ours); \
        return ours ? at : sg_real()->name(address, length, prot, flags, fd, offset); \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

EXPORT int munmap(void *address, size_t length)
{
    return sg_real()->munmap(address, length);
}

/* A device is ready as its driver says; the stand-in file would always be. */
EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    struct pollfd others[64];
    int ready = 0, known = 0;
    for (nfds_t i = 0; fds && i < n && n <= 64; i++) {
        bool ours = false;
        others[i] = fds[i];
        short mask = sg_file_known(fds[i].fd) ? sg_file_poll_mask(fds[i].fd, &ours) : 0;
        if (!ours)
            continue;
        known++;
        others[i].fd = -1;
        others[i].revents = mask & fds[i].events;
        ready += others[i].revents != 0;
    }
    if (!known)
        return sg_real()->poll(fds, n, timeout);
    short masks[64];
    for (nfds_t i = 0; i < n; i++)
        masks[i] = others[i].revents;
    int result = sg_real()->poll(others, n, ready ? 0 : timeout);
    if (result < 0)
        return result;
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = others[i].fd < 0 && fds[i].fd >= 0 ? masks[i] : others[i].revents;
    return result + ready;
}

/* ---- the dlsym hook's table ---- */

void *sg_interposer(const char *name, void *real_function)
{
    static const struct {
        const char *name;
        size_t offset;
        void *ours;
    } table[] = {
#define X(ret, name, params) {#name, offsetof(struct sg_real, name), (void *)name},
        SG_REALS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name))
            continue;
        void *libc;
        memcpy(&libc, (char *)sg_real() + table[i].offset, sizeof libc);
        return libc == real_function ? table[i].ours : NULL;
    }
    return NULL;
}

/* ---- the door for runtimes that load this library themselves ---- */

/* 0, or -1 with errno: no manifest in `tree`. Devices are opened on `server` from now on; those opened
 * before in another tree answer EIO. */
EXPORT int stuntgpu_connect(const char *server, const char *tree)
{
    if (sg_tree() && !strcmp(sg_tree(), tree)) /* this process is preloaded: its session is the same */
        return 0;
    sg_server_set(server, false);
    return sg_tree_load(tree) ? 0 : -1;
}

/* Where `path` is really looked up, in `to`; its length, or -1 with ERANGE. */
EXPORT int stuntgpu_path(const char *path, char *to, size_t size)
{
    char buffer[SG_PATH_MAX];
    const char *found = sg_redirect(path, buffer);
    size_t n = strlen(found);
    if (n >= size) {
        errno = ERANGE;
        return -1;
    }
    memcpy(to, found, n + 1);
    return (int)n;
}

EXPORT int stuntgpu_open(const char *path, int flags) { return open(path, flags | O_CLOEXEC, 0600); }
EXPORT int stuntgpu_close(int fd) { return close(fd); }
EXPORT int stuntgpu_dup(int fd) { return dup(fd); }
EXPORT int stuntgpu_ioctl(int fd, unsigned long request, void *arg) { return ioctl(fd, request, arg); }
EXPORT ssize_t stuntgpu_read(int fd, void *to, size_t size) { return read(fd, to, size); }
EXPORT ssize_t stuntgpu_write(int fd, const void *from, size_t size) { return write(fd, from, size); }
EXPORT int stuntgpu_munmap(void *address, size_t length) { return munmap(address, length); }
EXPORT void *stuntgpu_mmap(void *address, size_t length, int prot, int flags, int fd, int64_t offset)
{
    return mmap(address, length, prot, flags, fd, offset);
}
