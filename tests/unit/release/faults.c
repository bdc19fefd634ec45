/* Fails the k-th system call of a process, counted from arm() on, with an error or with its end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

static long calls = -1, wanted;
static int with;

void arm(long call, int error) { calls = 0, wanted = call, with = error; }
long counted(void) { return calls; }

static int fails(void) {
    if (calls < 0 || ++calls != wanted) return 0;
    if (with < 0) kill(getpid(), SIGKILL);
    errno = with;
    return 1;
}

#define WRAP(type, name, given, passed)                        \
    type name given {                                          \
        static type(*real) given;                              \
        if (!real) real = (type(*) given)dlsym(RTLD_NEXT, #name); \
        return fails() ? (type)-1 : real passed;               \
    }
#define OPEN(name, given, passed)                              \
    int name given {                                           \
        static int(*real)();                                   \
        va_list rest;                                          \
        va_start(rest, flags);                                 \
        mode_t mode = va_arg(rest, mode_t);                    \
        va_end(rest);                                          \
        if (!real) real = (int (*)())dlsym(RTLD_NEXT, #name);  \
        return fails() ? -1 : real passed;                     \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
WRAP(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size))
WRAP(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
WRAP(ssize_t, pwrite64, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, ftruncate64, (int fd, off_t size), (fd, size))
WRAP(int, flock, (int fd, int kind), (fd, kind))
WRAP(int, close, (int fd), (fd))
WRAP(int, link, (const char *from, const char *to), (from, to))
WRAP(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
WRAP(int, stat, (const char *path, void *to), (path, to))
WRAP(int, stat64, (const char *path, void *to), (path, to))
WRAP(int, lstat, (const char *path, void *to), (path, to))
WRAP(int, lstat64, (const char *path, void *to), (path, to))
WRAP(int, fstat, (int fd, void *to), (fd, to))
WRAP(int, fstat64, (int fd, void *to), (fd, to))
WRAP(int, fstatat64, (int at, const char *path, void *to, int flags), (at, path, to, flags))
WRAP(ssize_t, getrandom, (void *to, size_t size, unsigned flags), (to, size, flags))
