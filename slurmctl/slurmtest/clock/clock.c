// A clock that a test can step, preloaded (LD_PRELOAD) into every process of a
// cluster: CLOCK_REALTIME is off by as many seconds as the file says that
// SLURMTEST_CLOCK names (one int64, mapped); CLOCK_MONOTONIC is as it is, as when an
// administrator sets a machine's clock.
//
// C programs get it because their calls are interposed. Go programs read the time
// from the vDSO, the code that the kernel maps into every process, which they find
// by its address in the auxiliary vector. That is made to point at this library,
// which has the vDSO's symbols too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static const int64_t none = 0;
static const volatile int64_t *offset = &none;

#if defined __x86_64__
static long kernel(long number, long a, long b) {
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return result;
}
#else
#error "only on x86-64 is it known how Go finds the vDSO"
#endif

int __vdso_clock_gettime(clockid_t clock, struct timespec *ts) {
	long result = kernel(SYS_clock_gettime, clock, (long)ts);
	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) ts->tv_sec += *offset;
	return result;
}

int __vdso_gettimeofday(struct timeval *tv, void *zone) {
	long result = kernel(SYS_gettimeofday, (long)tv, (long)zone);
	if (result == 0 && tv) tv->tv_sec += *offset;
	return result;
}

int clock_gettime(clockid_t clock, struct timespec *ts) {
	long result = __vdso_clock_gettime(clock, ts);
	if (result < 0) errno = -result;
	return result < 0 ? -1 : 0;
}

int gettimeofday(struct timeval *tv, void *zone) { return __vdso_gettimeofday(tv, zone); }

time_t time(time_t *t) {
	struct timespec now;
	__vdso_clock_gettime(CLOCK_REALTIME, &now);
	if (t) *t = now.tv_sec;
	return now.tv_sec;
}

// The kernel gets deadlines in its own time.
static struct timespec real(const struct timespec *ts) {
	struct timespec r = *ts;
	r.tv_sec -= *offset;
	if (r.tv_sec < 0) r.tv_sec = 0;
	return r;
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until) {
	static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	if (!next) next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	struct timespec r = real(until);
	return next(c, m, &r);
}

int sem_timedwait(sem_t *s, const struct timespec *until) {
	static int (*next)(sem_t *, const struct timespec *);
	if (!next) next = dlsym(RTLD_NEXT, "sem_timedwait");
	struct timespec r = real(until);
	return next(s, &r);
}

int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until) {
	static int (*next)(pthread_mutex_t *, const struct timespec *);
	if (!next) next = dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
	struct timespec r = real(until);
	return next(m, &r);
}

__attribute__((constructor)) static void start(void) {
	const char *path = getenv("SLURMTEST_CLOCK");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file >= 0) {
		void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
		if (page != MAP_FAILED) offset = page;
		close(file);
	}
	Dl_info self;
	char **end = environ;
	if (!dladdr((void *)__vdso_clock_gettime, &self)) return;
	while (*end) end++;
	for (ElfW(auxv_t) *a = (ElfW(auxv_t) *)(end + 1); a->a_type != AT_NULL; a++)
		if (a->a_type == AT_SYSINFO_EHDR) a->a_un.a_val = (uintptr_t)self.dli_fbase;
}
