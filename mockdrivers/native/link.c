/* Calls to the device server: a pool of connections, one conversation at a time on each.
 *
 * A thread takes a free connection or opens another, so a thread that waits for an event does not
 * hold up the rest. All connections of a process carry one token: to the server they are one client.
 * After fork the child closes what it inherited and becomes a client of its own.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_LINKS 256
#define LOWEST_FD 200 /* out of the way of programs that close or reuse small numbers */

struct link {
    int fd; /* -1: slot unused */
    bool busy;
    bool ended; /* of an earlier session: closed when its call comes back */
    ino_t ino; /* tells our socket from a stranger's file under the same number */
};

static struct link links[MAX_LINKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char server[sizeof((struct sockaddr_un *)0)->sun_path];
static uint64_t token, generation = 1;
static pid_t owner;
static bool wants_notices;

struct packet {
    struct sg_head head;
    char payload[SG_MAX_PAYLOAD];
};

static ssize_t send_packet(int fd, const struct sg_head *head, const void *payload, size_t size)
{
    struct iovec iov[2] = {{(void *)(uintptr_t)head, sizeof *head}, {(void *)(uintptr_t)payload, size}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = size ? 2 : 1};
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

static int received_fd(struct msghdr *message)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

/* Signals wait while we talk, except in await(): there one that is pending always interrupts, so none is
 * lost between two messages. Those a fault raises stay open. */
static void hold_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

/* Until there is something to receive. */
static void await(int socket_fd, const sigset_t *open, bool *interrupted)
{
    struct pollfd p = {.fd = socket_fd, .events = POLLIN};
    while (ppoll(&p, 1, NULL, open) < 0 && errno == EINTR)
        *interrupted = true;
}

/* Payload bytes received, or -1. */
static ssize_t receive_packet(int socket_fd, struct packet *packet, int *fd, const sigset_t *open, bool *interrupted)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {packet, sizeof *packet};
    await(socket_fd, open, interrupted);
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    *fd = n > 0 ? received_fd(&message) : -1;
    return n < (ssize_t)sizeof packet->head ? -1 : n - (ssize_t)sizeof packet->head;
}

/* One question of the server about our memory; fills `answer` and its payload. */
static size_t answer(struct packet *ask, size_t size, int fd, bool interrupted)
{
    struct sg_head *head = &ask->head;
    size_t used = 0;
    int result = -EINVAL;
    switch (head->op) {
    case SG_PEEK:
        if (head->a[1] <= SG_MAX_PAYLOAD) {
            result = sg_peek(head->a[0], ask->payload, (size_t)head->a[1]);
            used = result ? 0 : (size_t)head->a[1];
        }
        break;
    case SG_POKE:
        result = sg_poke(head->a[0], ask->payload, size);
        break;
    case SG_MAPS:
        result = sg_maps(head->a[0], head->a[1], ask->payload, SG_MAX_PAYLOAD, &used);
        break;
    case SG_REBACK:
        result = fd < 0 ? -EBADF : sg_reback(head->a[0], head->a[1], (int)head->a[2], fd, head->a[3]);
        break;
    case SG_RESTORE:
        result = sg_restore(head->a[0], head->a[1], (int)head->a[2]);
        break;
    case SG_TICK:
        result = interrupted ? -EINTR : 0;
        break;
    case SG_FILE:
        result = sg_file_id((int)head->a[0]);
        break;
    case SG_SAY:
        result = sg_real()->write(STDERR_FILENO, ask->payload, size) < 0 ? -errno : 0;
        break;
    }
    head->op = SG_ANSWER;
    head->result = result;
    return used;
}

/* False: the connection is dead. */
static bool talk(int socket_fd, struct sg_call *call, struct packet *packet, const sigset_t *open)
{
    bool interrupted = false;
    if (send_packet(socket_fd, &call->head, call->in, call->in_size) < 0)
        return false;
    for (;;) {
        int fd;
        ssize_t size = receive_packet(socket_fd, packet, &fd, open, &interrupted);
        if (size < 0)
            return false;
        if (packet->head.op == SG_DONE) {
            call->head = packet->head;
            call->fd = fd;
            call->out_used = (size_t)size < call->out_size ? (size_t)size : call->out_size;
            if (call->out)
                memcpy(call->out, packet->payload, call->out_used);
            return true;
        }
        size_t used = answer(packet, (size_t)size, fd, interrupted);
        if (fd >= 0)
            sg_real()->close(fd);
        if (send_packet(socket_fd, &packet->head, packet->payload, used) < 0)
            return false;
    }
}

static bool converse(int socket_fd, struct sg_call *call, struct packet *packet)
{
    sigset_t before;
    hold_signals(&before);
    bool alive = talk(socket_fd, call, packet, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return alive;
}

static int connect_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, server, sizeof server);
    int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (low < 0)
        return -1;
    int fd = sg_real()->fcntl(low, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (fd < 0) /* few descriptors allowed: the low one must do */
        fd = low;
    else
        sg_real()->close(low);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        sg_real()->close(fd);
        return -1;
    }
    return fd;
}

/* The tree and our own environment variables: a client's options are its own, not the server's. */
static size_t introduction(char *to, size_t room)
{
    const char *tree = sg_tree();
    size_t used = (size_t)snprintf(to, room, "%s", tree ? tree : "") + 1;
    for (char **variable = environ; variable && *variable; variable++) {
        size_t n = strlen(*variable) + 1;
        if (strncmp(*variable, "STUNTGPU_", 9) || used + n > room)
            continue;
        memcpy(to + used, *variable, n);
        used += n;
    }
    return used;
}

/* Introduces this process, or one more connection of it. Called with the lock held. */
static bool hello(int fd, struct packet *packet)
{
    char text[8192];
    struct sg_call call = {.head = {.op = SG_HELLO, .a = {SG_VERSION, token, (uint64_t)getpid(), wants_notices}},
                           .in = text, .in_size = introduction(text, sizeof text)};
    if (!converse(fd, &call, packet) || call.head.result < 0)
        return false;
    token = call.head.a[0];
    return true;
}

static bool still_ours(const struct link *link)
{
    struct stat st;
    return !sg_real()->fstat(link->fd, &st) && st.st_ino == link->ino;
}

/* The token dies with the last connection: files opened under it are void from then on. */
static void forget(struct link *link, bool close_it)
{
    if (close_it)
        sg_real()->close(link->fd);
    link->fd = -1;
    link->busy = false;
    for (size_t i = 0; i < MAX_LINKS; i++)
        if (links[i].fd >= 0 && !links[i].ended)
            return;
    token = 0;
    generation++;
}

static struct link *open_link(struct packet *packet)
{
    for (size_t i = 0; i < MAX_LINKS; i++) {
        struct link *link = &links[i];
        struct stat st;
        if (link->fd >= 0)
            continue;
        int fd = connect_server();
        if (fd < 0)
            return NULL;
        if (!hello(fd, packet) || sg_real()->fstat(fd, &st)) {
            sg_real()->close(fd);
            return NULL;
        }
        *link = (struct link){fd, true, false, st.st_ino};
        return link;
    }
    return NULL;
}

/* A connection for the caller alone, or NULL. `wanted` 0: any generation will do. */
static struct link *take(uint64_t wanted, struct packet *packet)
{
    struct link *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MAX_LINKS && !found; i++) {
        if (links[i].fd < 0 || links[i].busy || links[i].ended)
            continue;
        if (still_ours(&links[i]))
            found = &links[i];
        else
            forget(&links[i], false);
    }
    if (wanted && wanted != generation)
        found = NULL;
    else if (!found)
        found = open_link(packet);
    if (found)
        found->busy = true;
    pthread_mutex_unlock(&lock);
    return found;
}

static void give_back(struct link *link, bool alive)
{
    pthread_mutex_lock(&lock);
    if (link->ended) {
        sg_real()->close(link->fd);
        link->fd = -1;
    } else if (alive) {
        link->busy = false;
    } else {
        forget(link, true);
    }
    pthread_mutex_unlock(&lock);
}

int64_t sg_call(struct sg_call *call, uint64_t wanted)
{
    int saved = errno, result = -EIO;
    call->fd = -1;
    call->out_used = 0;
    if (!sg_owner() || !server[0])
        return -EIO;
    struct packet *packet = malloc(sizeof *packet);
    if (!packet)
        return -ENOMEM;
    struct link *link = take(wanted, packet);
    if (link) {
        bool alive = converse(link->fd, call, packet);
        give_back(link, alive);
        result = alive ? call->head.result : -EIO;
    }
    free(packet);
    errno = saved;
    return result;
}

/* The present session ends: what was opened in it is void, its memory stays mapped. */
void sg_server_set(const char *path, bool notices)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MAX_LINKS; i++) {
        links[i].ended = links[i].fd >= 0;
        if (links[i].fd >= 0 && !links[i].busy) {
            sg_real()->close(links[i].fd);
            links[i].fd = -1;
        }
    }
    token = 0;
    generation++;
    memset(server, 0, sizeof server);
    snprintf(server, sizeof server, "%s", path);
    wants_notices = notices;
    pthread_mutex_unlock(&lock);
}

bool sg_owner(void)
{
    return getpid() == owner;
}

uint64_t sg_generation(void)
{
    pthread_mutex_lock(&lock);
    uint64_t now = generation;
    pthread_mutex_unlock(&lock);
    return now;
}

bool sg_is_link(int fd)
{
    if (fd < 0)
        return false;
    for (size_t i = 0; i < MAX_LINKS; i++)
        if (links[i].fd == fd)
            return still_ours(&links[i]);
    return false;
}

static void before_fork(void)
{
    sg_files_lock();
    pthread_mutex_lock(&lock);
}

static void parent_after_fork(void)
{
    pthread_mutex_unlock(&lock);
    sg_files_unlock();
}

static void child_after_fork(void)
{
    owner = getpid();
    for (size_t i = 0; i < MAX_LINKS; i++) {
        if (links[i].fd >= 0)
            sg_real()->close(links[i].fd);
        links[i].fd = -1;
        links[i].busy = links[i].ended = false;
    }
    token = 0;
    generation++;
    pthread_mutex_unlock(&lock);
    sg_files_unlock();
    sg_memory_after_fork();
}

void sg_link_init(void)
{
    owner = getpid();
    for (size_t i = 0; i < MAX_LINKS; i++)
        links[i].fd = -1;
    pthread_atfork(before_fork, parent_after_fork, child_after_fork);
}
