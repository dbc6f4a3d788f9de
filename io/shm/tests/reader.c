/* Reads a segment as docs/shm.md describes it, with nothing but the document: prints names, quotes and updates. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t u64_at(const unsigned char *bytes, size_t offset) {
    uint64_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

static uint64_t fnv1a(const unsigned char *bytes, size_t len) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t at = 0; at < len; at++)
        hash = (hash ^ bytes[at]) * 0x100000001b3;
    return hash;
}

/* Copies the value of a row. Returns -1 when every attempt met a write: keep the older copy. */
static int read_row(const _Atomic uint64_t *row, uint64_t value[7]) {
    for (int tries = 0; tries < 64; tries++) {
        uint64_t before = atomic_load_explicit(&row[0], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        for (int word = 0; word < 7; word++)
            value[word] = atomic_load_explicit(&row[1 + word], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (before % 2 == 0 && atomic_load_explicit(&row[0], memory_order_relaxed) == before)
            return 0;
    }
    return -1;
}

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return fail("usage: reader FILE");
    int file = open(argv[1], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat found;
    unsigned char header[256];
    if (file < 0 || fstat(file, &found) != 0)
        return fail("cannot open it");
    if (!S_ISREG(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 022) != 0)
        return fail("it is not ours alone");
    if (pread(file, header, sizeof header, 0) != sizeof header || memcmp(header, "TICKPSHM", 8) != 0)
        return fail("it is no segment");
    uint32_t version, kind, pid;
    memcpy(&version, header + 8, 4);
    memcpy(&kind, header + 12, 4);
    memcpy(&pid, header + 40, 4);
    if (version != 1 || kind != 1 || u64_at(header, 248) != fnv1a(header, 248))
        return fail("its header is another, or damaged");
    uint64_t len = u64_at(header, 16), rows = u64_at(header, 88), capacity = u64_at(header, 120);
    uint64_t names = u64_at(header, 96), quotes = u64_at(header, 104), stream = u64_at(header, 112);
    if (len != (uint64_t)found.st_size || rows < 1 || rows > 65536 || capacity > 4194304 || names != 4096)
        return fail("its sizes make no sense");
    uint64_t section = (64 * rows + 4095) / 4096 * 4096;
    uint64_t end = names + 2 * section;
    if (quotes != names + section || (capacity != 0 && stream != end) ||
        len != end + (capacity == 0 ? 0 : (128 + 128 * capacity + 4095) / 4096 * 4096))
        return fail("its sections do not lie where they must");
    const unsigned char *base = mmap(NULL, len, PROT_READ, MAP_SHARED, file, 0);
    if (base == MAP_FAILED)
        return fail("cannot map it");
    printf("pid %" PRIu32 " state %" PRIu64 " named %" PRIu64 "\n", pid,
           atomic_load((const _Atomic uint64_t *)(base + 256)),
           atomic_load((const _Atomic uint64_t *)(base + 272)));
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t name[7], quote[7];
        if (read_row((const _Atomic uint64_t *)(base + names + 64 * row), name) != 0 || name[0] == 0)
            continue;
        if (read_row((const _Atomic uint64_t *)(base + quotes + 64 * row), quote) != 0)
            continue;
        const unsigned char *state = (const unsigned char *)&quote[6];
        uint32_t last_qty;
        memcpy(&last_qty, state, 4);
        printf("row %" PRIu64 " %.48s bid %" PRId64 " x %" PRIu64 " ask %" PRId64 " x %" PRIu64 " last %" PRId64
               " x %" PRIu32 " ts %" PRIu64 " health %d trading %c reason %d\n",
               row, (const char *)name, (int64_t)quote[0], quote[1], (int64_t)quote[2], quote[3], (int64_t)quote[4],
               last_qty, quote[5], state[4], state[5] == 0 ? '-' : state[5], state[6]);
    }
    if (capacity == 0)
        return 0;
    uint64_t tail = atomic_load((const _Atomic uint64_t *)(base + stream));
    for (uint64_t position = tail < capacity ? 0 : tail - capacity; position < tail; position++) {
        const _Atomic uint64_t *slot =
            (const _Atomic uint64_t *)(base + stream + 128 + 128 * (position % capacity));
        uint64_t words[10];
        uint64_t before = atomic_load_explicit(&slot[0], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        for (int word = 0; word < 10; word++)
            words[word] = atomic_load_explicit(&slot[1 + word], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (before != 2 * position + 2 || atomic_load_explicit(&slot[0], memory_order_relaxed) != before)
            return fail("an update was overtaken, and there is no writer");
        const unsigned char *last = (const unsigned char *)&words[9];
        uint16_t instrument;
        memcpy(&instrument, last, 2);
        printf("update %" PRIu64 " sequence %" PRIu64 " instrument %d kind %d side %d health %d price %" PRId64 "\n",
               position, words[0], instrument, last[2], last[3], last[4], (int64_t)words[3]);
    }
    return 0;
}
