/* Moves the wall clock of one process by as many seconds as the file $TEST_CLOCK holds, and leaves the monotonic one alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile long long *offset;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    void *map = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, open(getenv("TEST_CLOCK"), O_RDONLY), 0);
    if (map == MAP_FAILED) abort();
    offset = map;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    if (offset == NULL) begin();
    int failed = real(which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (kept != NULL) *kept = exact.tv_sec;
    return exact.tv_sec;
}
