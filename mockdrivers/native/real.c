/* The C library's own functions, found past our interposers, and the dlsym hook. */
#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#define DLSYM_VERSION "GLIBC_2.2.5"
#else
#define DLSYM_VERSION "GLIBC_2.17"
#endif

static struct sg_real real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* RTLD_NEXT finds nothing when a program loads us with dlopen and keeps us local. */
static void *next(const char *name)
{
    void *found = real.dlsym(RTLD_NEXT, name);
    if (!found) {
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        found = libc ? real.dlsym(libc, name) : NULL;
    }
    return found;
}

static void resolve(void)
{
    /* dlsym is ours in this file: only a versioned lookup reaches the real one. */
    void *found = dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
    if (!found) {
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        found = libc ? dlvsym(libc, "dlsym", DLSYM_VERSION) : NULL;
    }
    memcpy(&real.dlsym, &found, sizeof found);
    void *function;
#define X(ret, name, params) \
    function = next(#name); \
    memcpy(&real.name, &function, sizeof function);
    SG_REALS(X)
#undef X
}

struct sg_real *sg_real(void)
{
    pthread_once(&once, resolve);
    return &real;
}

static void *hooked(void *handle, const char *name)
{
    void *found = real.dlsym(handle, name);
    void *ours = found && name ? sg_interposer(name, found) : NULL;
    return ours ? ours : found;
}

/* ctypes and friends ask libc's handle for "mmap": give them ours. RTLD_NEXT and RTLD_DEFAULT depend
 * on the caller's address, so those are tail calls, which leave the caller's address in place. */
EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
    sg_real();
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
        return real.dlsym(handle, name);
    return hooked(handle, name);
}
