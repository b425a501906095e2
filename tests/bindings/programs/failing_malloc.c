/* A library for LD_PRELOAD in which allocations of the calling thread fail: after fail_allocations(n, count), the next
   n succeed, and then `count` fail. It also counts the bytes that all threads request. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static __thread long succeeding, failing, failed;
static _Atomic long asked;

void fail_allocations(long n, long count) {
    succeeding = n;
    failing = count;
    if (count > 0) failed = 0;
}
long failed_allocations(void) { return failed; }
long allocated_bytes(void) { return asked; }

static int fails(size_t size) {
    asked += (long)size;
    if (failing == 0 || succeeding-- > 0) return 0;
    --failing;
    ++failed;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails(count * size) ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return fails(size) ? NULL : __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { return fails(size) ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **to, size_t alignment, size_t size) {
    void *memory = memalign(alignment, size);
    if (memory == NULL) return ENOMEM;
    *to = memory;
    return 0;
}
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    if (fails(size)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
