// A file system that turns read-only under a process: preloaded, it lets every write
// below the folder that CRASHTEST_READONLY names fail as there, as long as a file of
// that name with ".readonly" exists. A real one cannot be remounted while files on it
// are open for writing, and a test has no disk that fails.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int below(const char *path) {
	const char *dir = getenv("CRASHTEST_READONLY");
	char flag[4096];
	if (!dir || strncmp(path, dir, strlen(dir)) != 0) return 0;
	snprintf(flag, sizeof flag, "%s.readonly", dir);
	return access(flag, F_OK) == 0;
}

static int forbidden(int fd) {
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 0) return 0;
	path[n] = 0;
	return below(path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define ON_FILE(result, name, parameters, arguments) \
	result name parameters { \
		if (forbidden(fd)) { errno = EROFS; return -1; } \
		REAL(name); \
		return real arguments; \
	}

ON_FILE(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
ON_FILE(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
ON_FILE(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at))
ON_FILE(int, ftruncate, (int fd, off_t n), (fd, n))
ON_FILE(int, ftruncate64, (int fd, off64_t n), (fd, n))
ON_FILE(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))

int unlink(const char *path) {
	if (below(path)) { errno = EROFS; return -1; }
	REAL(unlink);
	return real(path);
}

static int opened(const char *name, const char *path, int flags, mode_t mode) {
	if ((flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && below(path)) { errno = EROFS; return -1; }
	int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
	return real(path, flags, mode);
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) { \
		va_list more; \
		va_start(more, flags); \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
		va_end(more); \
		return opened(#name, path, flags, mode); \
	}

OPEN(open)
OPEN(open64)
