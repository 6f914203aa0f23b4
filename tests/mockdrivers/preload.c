/* A foreign program for the shim's tests: raw calls only, one check a line. Exit code 0: all held. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define GET_VERSION 0x80084b01u
#define TOPOLOGY "/sys/devices/virtual/kfd/kfd/topology"

static int failures;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
            failures++; \
        } \
    } while (0)

static int version_works(int fd)
{
    uint32_t version[2] = {0, 0};
    return ioctl(fd, GET_VERSION, version) == 0 && version[0] == 1 && version[1] >= 14;
}

static void paths(void)
{
    struct stat st;
    char text[4096];
    CHECK(stat("/dev/kfd", &st) == 0 && S_ISCHR(st.st_mode));
    CHECK(lstat("//dev/dri/renderD128", &st) == 0 && major(st.st_rdev) == 226 && minor(st.st_rdev) == 128);
    CHECK(access("/dev/dri/renderD128", R_OK | W_OK) == 0);
    CHECK(access("/dev/dri/card0", F_OK) < 0 && errno == ENOENT);
    FILE *file = fopen(TOPOLOGY "/nodes/1/gpu_id", "r");
    CHECK(file && fgets(text, sizeof text, file) && atoi(text) > 0);
    if (file)
        fclose(file);
    DIR *folder = opendir("/sys/class/drm");
    int seen = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        seen += !strcmp(entry->d_name, "renderD128");
    CHECK(seen == 1);
    if (folder)
        closedir(folder);
    CHECK(realpath("/sys/class/drm/renderD128/device", text) && !strncmp(text, "/sys/devices/pci", 16));
    CHECK(readlink("/sys/class/kfd/kfd", text, sizeof text) > 0);
    int folder_fd = open("/dev/dri", O_RDONLY | O_DIRECTORY);
    int render = openat(folder_fd, "renderD128", O_RDWR);
    CHECK(render >= 0 && ioctl(render, GET_VERSION, text) < 0 && errno == ENOTTY); /* a device, but not kfd */
    close(render);
    close(folder_fd);
    CHECK(stat("/dev/null", &st) == 0 && major(st.st_rdev) == 1);
}

static void descriptors(void)
{
    int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    int copies[4] = {dup(fd), fcntl(fd, F_DUPFD, 40), fcntl(fd, F_DUPFD_CLOEXEC, 41), dup2(fd, 60)};
    struct stat st;
    CHECK(version_works(fd));
    CHECK(close(fd) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(copies[i] >= 0 && version_works(copies[i]));
    CHECK(fstat(copies[0], &st) == 0 && S_ISCHR(st.st_mode));
    CHECK(dup2(open("/dev/null", O_RDONLY), copies[0]) == copies[0]);
    CHECK(!version_works(copies[0]) && errno == ENOTTY);
    for (int i = 0; i < 4; i++)
        CHECK(close(copies[i]) == 0);
    CHECK(!version_works(60) && errno == EBADF);
}

/* Closed behind the shim's back, the number then names another file. */
static void reused_number(void)
{
    int fd = open("/dev/kfd", O_RDWR);
    FILE *stream = fdopen(fd, "r+");
    fclose(stream);
    int pipes[2];
    CHECK(pipe(pipes) == 0 && (pipes[0] == fd || pipes[1] == fd));
    CHECK(!version_works(fd) && errno == ENOTTY);
    CHECK(write(pipes[1], "x", 1) == 1);
    close(pipes[0]);
    close(pipes[1]);
}

static void odd_arguments(void)
{
    int fd = open("/dev/kfd", O_RDWR);
    char byte;
    CHECK(ioctl(fd, GET_VERSION, NULL) < 0 && errno == EFAULT);
    CHECK(ioctl(fd, GET_VERSION, (void *)-8) < 0 && errno == EFAULT);
    CHECK(ioctl(fd, 0xc0184b82u, &byte) < 0 && (errno == EINVAL || errno == EFAULT));
    CHECK(ioctl(-1, GET_VERSION, &byte) < 0 && errno == EBADF);
    CHECK(ioctl(1 << 30, GET_VERSION, &byte) < 0 && errno == EBADF);
    const char *volatile nowhere = NULL;
    CHECK(open(nowhere, O_RDONLY) < 0 && errno == EFAULT);
    CHECK(read(fd, &byte, 1) < 0 && errno == EINVAL);
    CHECK(write(fd, &byte, 1) < 0 && errno == EINVAL);
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0x123000) == MAP_FAILED);
    CHECK(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && ioctl(fd, FIOCLEX) == 0);
    errno = 77;
    CHECK(version_works(fd) && errno == 77);
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN | POLLOUT}, {.fd = -1, .events = POLLIN}};
    CHECK(poll(both, 2, 0) == 1 && both[0].revents == (POLLIN | POLLOUT) && !both[1].revents);
    int render = open("/dev/dri/renderD128", O_RDWR);
    struct pollfd one = {.fd = render, .events = POLLIN};
    CHECK(poll(&one, 1, 10) == 0);
    close(render);
    close(fd);
}

static void through_dlsym(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    int (*their_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(libc, "open");
    int (*their_ioctl)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(libc, "ioctl");
    void *(*their_mmap)(void *, size_t, int, int, int, off_t)
        = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(libc, "mmap");
    uint32_t version[2];
    FILE *file = fopen(TOPOLOGY "/nodes/1/gpu_id", "r");
    uint64_t gpu_id = 0;
    CHECK(file && fscanf(file, "%lu", &gpu_id) == 1);
    if (file)
        fclose(file);
    int fd = their_open("/dev/kfd", O_RDWR);
    CHECK(fd >= 0 && their_ioctl(fd, GET_VERSION, version) == 0);
    CHECK(their_mmap(NULL, 0x2000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(3ull << 62 | gpu_id << 46))
          != MAP_FAILED);
    CHECK(dlsym(RTLD_NEXT, "open") != NULL && dlsym(RTLD_DEFAULT, "no_such_symbol_anywhere") == NULL);
    CHECK(dlsym(libc, "strlen") != NULL);
    close(fd);
}

static void *many_calls(void *argument)
{
    intptr_t bad = 0;
    for (int i = 0; i < 200; i++) {
        int fd = open("/dev/kfd", O_RDWR);
        bad += !version_works(fd);
        close(fd);
    }
    (void)argument;
    return (void *)bad;
}

static void threads(void)
{
    pthread_t all[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, many_calls, NULL);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(all[i], &bad);
        CHECK(!bad);
    }
}

static int child_code(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void forks(void)
{
    int fd = open("/dev/kfd", O_RDWR);
    pid_t child = fork();
    if (!child) { /* KFD contexts are not inherited; a new open is */
        int refused = !version_works(fd) && errno == EBADF, own = open("/dev/kfd", O_RDWR);
        _exit(refused && version_works(own) ? 0 : 1);
    }
    CHECK(child_code(child) == 0);
    CHECK(version_works(fd));
    child = vfork();
    if (!child) { /* shares our memory: must not touch the tables */
        close(fd);
        execl("/bin/true", "true", (char *)NULL);
        _exit(2);
    }
    CHECK(child_code(child) == 0);
    CHECK(version_works(fd));
    close(fd);
}

static volatile int hammering;

static void *hammer(void *argument)
{
    while (hammering) {
        int fd = open("/dev/kfd", O_RDWR);
        version_works(fd);
        close(fd);
    }
    return argument;
}

/* A child must find no lock held by a thread it does not have. */
static void forks_beside_threads(void)
{
    pthread_t all[3];
    hammering = 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&all[i], NULL, hammer, NULL);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(10);
            _exit(version_works(open("/dev/kfd", O_RDWR)) ? 0 : 1);
        }
        CHECK(child_code(child) == 0);
    }
    hammering = 0;
    for (int i = 0; i < 3; i++)
        pthread_join(all[i], NULL);
}

static void closes_everything(void)
{
    int fd = open("/dev/kfd", O_RDWR);
    CHECK(version_works(fd));
    for (int other = 3; other < 1024; other++)
        close(other);
    fd = open("/dev/kfd", O_RDWR);
    CHECK(version_works(fd));
    close(fd);
}

int main(void)
{
    paths();
    descriptors();
    reused_number();
    odd_arguments();
    through_dlsym();
    threads();
    forks();
    forks_beside_threads();
    closes_everything();
    return failures ? 1 : 0;
}
