/* What the parts of the shim share. Nothing here knows a device. */
#ifndef STUNTGPU_SHIM_H
#define STUNTGPU_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "protocol.h"

/* Protected: calls among ourselves stay here even when the libc comes first in the search order. */
#define EXPORT __attribute__((visibility("protected")))

/* real.c: the libc's own functions; X(return type, name, parameters) */
#define SG_REALS(X) \
    X(int, open, (const char *, int, ...)) \
    X(int, open64, (const char *, int, ...)) \
    X(int, openat, (int, const char *, int, ...)) \
    X(int, openat64, (int, const char *, int, ...)) \
    X(FILE *, fopen, (const char *, const char *)) \
    X(FILE *, fopen64, (const char *, const char *)) \
    X(DIR *, opendir, (const char *)) \
    X(int, stat, (const char *, struct stat *)) \
    X(int, stat64, (const char *, struct stat64 *)) \
    X(int, lstat, (const char *, struct stat *)) \
    X(int, lstat64, (const char *, struct stat64 *)) \
    X(int, fstat, (int, struct stat *)) \
    X(int, fstat64, (int, struct stat64 *)) \
    X(int, fstatat, (int, const char *, struct stat *, int)) \
    X(int, fstatat64, (int, const char *, struct stat64 *, int)) \
    X(int, statx, (int, const char *, int, unsigned, struct statx *)) \
    X(int, access, (const char *, int)) \
    X(int, faccessat, (int, const char *, int, int)) \
    X(ssize_t, readlink, (const char *, char *, size_t)) \
    X(ssize_t, readlinkat, (int, const char *, char *, size_t)) \
    X(char *, realpath, (const char *, char *)) \
    X(int, close, (int)) \
    X(int, dup, (int)) \
    X(int, dup2, (int, int)) \
    X(int, dup3, (int, int, int)) \
    X(int, fcntl, (int, int, ...)) \
    X(int, fcntl64, (int, int, ...)) \
    X(ssize_t, read, (int, void *, size_t)) \
    X(ssize_t, write, (int, const void *, size_t)) \
    X(ssize_t, pread, (int, void *, size_t, off_t)) \
    X(ssize_t, pread64, (int, void *, size_t, off64_t)) \
    X(ssize_t, pwrite, (int, const void *, size_t, off_t)) \
    X(ssize_t, pwrite64, (int, const void *, size_t, off64_t)) \
    X(int, ioctl, (int, unsigned long, ...)) \
    X(void *, mmap, (void *, size_t, int, int, int, off_t)) \
    X(void *, mmap64, (void *, size_t, int, int, int, off64_t)) \
    X(int, munmap, (void *, size_t)) \
    X(int, poll, (struct pollfd *, nfds_t, int))

struct sg_real {
#define X(ret, name, params) ret(*name) params;
    SG_REALS(X)
#undef X
    void *(*dlsym)(void *, const char *);
};

struct sg_real *sg_real(void); /* resolved on first use; safe before constructors have run */

/* paths.c: which paths live in the server's tree */
#define SG_PATH_MAX 4096
bool sg_tree_load(const char *tree); /* reads TREE/manifest; false, errno set: there is none */
const char *sg_tree(void);           /* the tree's folder, or NULL */
const char *sg_redirect(const char *path, char *buffer); /* path itself when it is not ours */
struct sg_node {
    dev_t dev; /* the stand-in file in the tree */
    ino_t ino;
    dev_t rdev; /* what stat shows */
    char path[256]; /* what the client calls it */
};
const struct sg_node *sg_node_of(dev_t dev, ino_t ino); /* NULL: not a device */

/* link.c: calls to the server */
struct sg_call {
    struct sg_head head; /* in: request; out: the server's SG_DONE */
    const void *in;      /* request payload */
    size_t in_size;
    void *out; /* room for the reply's payload */
    size_t out_size;
    size_t out_used;
    int fd; /* out: descriptor that came along, or -1 */
};
void sg_server_set(const char *path, bool notices); /* notices: print what the server has to say */
bool sg_owner(void); /* false in a vfork child, which shares our memory and must not touch it */
uint64_t sg_generation(void); /* changes with fork and with a new server: older files are void */
int64_t sg_call(struct sg_call *call, uint64_t generation); /* result, or -errno (-EIO: no server) */
bool sg_is_link(int fd);
void sg_link_init(void);

/* memory.c: the server's questions about our memory; each returns 0 or -errno */
int sg_peek(uint64_t address, void *to, size_t size);
int sg_poke(uint64_t address, const void *from, size_t size);
int sg_maps(uint64_t address, uint64_t size, char *out, size_t room, size_t *used);
int sg_reback(uint64_t address, uint64_t size, int prot, int fd, uint64_t offset);
int sg_restore(uint64_t address, uint64_t size, int prot);
void sg_memory_after_fork(void);

/* files.c: descriptors of devices, and what one does with them */
void sg_files_lock(void);
void sg_files_unlock(void);
int sg_file_opened(int fd); /* after a real open in the tree: fd, or -1 when the device refuses */
bool sg_file_known(int fd);
int sg_file_id(int fd); /* the server's id, or -EBADF */
void sg_file_closed(int fd);
void sg_file_duped(int from, int to);
int sg_file_ioctl(int fd, unsigned long request, void *arg, bool *ours);
void *sg_file_mmap(void *address, size_t length, int prot, int flags, int fd, uint64_t offset, bool *ours);
ssize_t sg_file_read(int fd, void *to, size_t size, off64_t *offset, bool *ours);
ssize_t sg_file_write(int fd, const void *from, size_t size, off64_t *offset, bool *ours);
short sg_file_poll_mask(int fd, bool *ours);

/* shim.c: the interposed function of that name, or NULL */
void *sg_interposer(const char *name, void *real_function);

#endif
