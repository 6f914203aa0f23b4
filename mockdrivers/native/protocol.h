/* The conversation between libstuntgpu.so (in the client) and the device server.
 *
 * Unix socket, SOCK_SEQPACKET: one message is one packet, a fixed head and then payload bytes; a
 * file descriptor may ride along (SCM_RIGHTS). The client asks; until the server answers SG_DONE it
 * may ask back for the client's memory, and the client answers each with SG_ANSWER. The server
 * holds all device knowledge, this side none. mockdrivers/protocol.py is the same text in Python;
 * a test compares the two.
 */
#ifndef STUNTGPU_PROTOCOL_H
#define STUNTGPU_PROTOCOL_H

#include <stdint.h>

#define SG_VERSION 1
#define SG_MAX_PAYLOAD 65536

enum sg_op {
    /* client asks */
    SG_HELLO = 1,   /* a0 version, a1 token or 0, a2 pid, a3 1: wants SG_SAY; payload: tree path and the
                       STUNTGPU_ variables, each ended by NUL -> a0 token */
    SG_OPEN = 2,    /* a0 flags; payload: path -> result file id, a0 poll mask */
    SG_CLOSE = 3,   /* file */
    SG_IOCTL = 4,   /* file, a0 request, a1 argument; payload: bytes in -> result, payload: bytes out */
    SG_MMAP = 5,    /* file, a0 length, a1 prot, a2 flags, a3 offset -> fd, a0 its offset */
    SG_READ = 6,    /* file, a0 offset, a1 length -> payload */
    SG_WRITE = 7,   /* file, a0 offset; payload -> result */
    SG_CONTROL = 8, /* payload: JSON -> payload: JSON; our own tools only */
    /* server asks back */
    SG_DONE = 32,    /* result: value or -errno; ends the call */
    SG_PEEK = 33,    /* a0 address, a1 length -> payload */
    SG_POKE = 34,    /* a0 address; payload */
    SG_MAPS = 35,    /* a0 address, a1 length -> payload: lines of /proc/self/maps that overlap */
    SG_REBACK = 36,  /* a0 address, a1 length, a2 prot, a3 offset; fd: put the fd's pages there, contents kept */
    SG_RESTORE = 37, /* a0 address, a1 length, a2 prot: back to private memory, contents kept */
    SG_TICK = 38,    /* a long wait goes on -> result 0, or -EINTR when a signal came */
    SG_SAY = 39,     /* payload: text for the person who runs the program (stderr) */
    SG_FILE = 40,    /* a0 descriptor -> result: its file id, or -EBADF when it is no device */
    /* client answers one of those */
    SG_ANSWER = 64,
};

struct sg_head {
    uint32_t op;
    int32_t result;
    uint32_t file;
    uint32_t flags;
    uint64_t a[4];
};

#endif
