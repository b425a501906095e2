// Checks map_pages() of system.cpp if the system maps pages at any address: exactly the requested pages
// remain mapped. Prints the number of correct mappings.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>

namespace {

std::map<std::uintptr_t, std::size_t> mapped;  // the address and the bytes of each run of pages
std::uintptr_t next_place;

void* map_at_next_place(void*, std::size_t size, int, int, int, long) {
    mapped[next_place] = size;
    return reinterpret_cast<void*>(next_place);
}
int unmap(void* data, std::size_t size) {
    const auto from = reinterpret_cast<std::uintptr_t>(data), to = from + size;
    for (auto run = mapped.begin(); run != mapped.end();) {
        const auto [begin, bytes] = *run;
        const std::uintptr_t end = begin + bytes;
        if (end <= from || to <= begin) {
            ++run;
            continue;
        }
        run = mapped.erase(run);
        if (begin < from) mapped[begin] = from - begin;
        if (to < end) mapped[to] = end - to;
    }
    return 0;
}
int advise(void*, std::size_t, int) {
    return 0;
}

}  // namespace

#define mmap map_at_next_place
#define munmap unmap
#define madvise advise
#include "drivers/system.cpp"

int main() {
    constexpr std::size_t kPage = 4096;
    int right = 0;
    for (std::size_t pages = 0; pages < 2 * maxops::kHugePageBytes / kPage; pages += 37)
        for (std::size_t huge : {1, 2, 5}) {
            mapped.clear();
            next_place = (std::uintptr_t{1} << 40) + pages * kPage;
            const std::size_t size = huge * maxops::kHugePageBytes;
            void* const data = maxops::map_pages(size);
            const auto place = reinterpret_cast<std::uintptr_t>(data);
            if (mapped.size() != 1 || mapped.count(place) == 0 || mapped[place] != size ||
                place % maxops::kHugePageBytes != 0 || place < next_place)
                return 1;
            maxops::unmap_pages(data, size);
            if (!mapped.empty()) return 1;
            ++right;
        }
    std::printf("%d\n", right);
}
