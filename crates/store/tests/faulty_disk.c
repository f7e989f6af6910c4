/* Preloaded into a process, makes the disk under FAULTY_FOLDER fail like a real one, while a file of that name is there:
 *   fail-sync   fsync and fdatasync answer EIO
 *   full        writes answer ENOSPC
 * Everything above the system calls is what runs in production. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_faulty(int fd, const char *fault) {
    const char *folder = getenv("FAULTY_FOLDER");
    char link[64], path[4096], flag[4096];
    ssize_t len;
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof path - 1);
    if (len < 0) return 0;
    path[len] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
    snprintf(flag, sizeof flag, "%s/%s", folder, fault);
    return access(flag, F_OK) == 0;
}

#define FAULTY(result, name, fault, error, params, args)                     \
    result name params {                                                     \
        static result(*real) params;                                         \
        if (!real) real = (result(*) params)dlsym(RTLD_NEXT, #name);         \
        if (is_faulty(fd, fault)) { errno = error; return -1; }              \
        return real args;                                                    \
    }

FAULTY(int, fsync, "fail-sync", EIO, (int fd), (fd))
FAULTY(int, fdatasync, "fail-sync", EIO, (int fd), (fd))
FAULTY(ssize_t, write, "full", ENOSPC, (int fd, const void *data, size_t size), (fd, data, size))
FAULTY(ssize_t, pwrite, "full", ENOSPC, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
FAULTY(ssize_t, pwrite64, "full", ENOSPC, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
