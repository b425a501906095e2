// Where a run of equal ids ends, with and without galloping, as native/kernels/segment_ids.h has it: Ids::run_end().
//
// Restated in C, since Frama-C reads no C++. What differs: `differ` says so where the text ORs the bits that differ.
#include "run_end.h"

size_t run_end(const int64_t *ids, size_t i, size_t n, bool gallops) {
    const int64_t id = ids[i];
    const size_t scanned = gallops && n - i > kGallopRows ? i + kGallopRows : n;
    const size_t begin = i;
    ++i;
    /*@ loop invariant begin < i <= scanned;
        loop invariant Equal(ids, begin, i, id);
        loop assigns i;
        loop variant scanned - i; */
    for (; scanned - i >= kRunScan; i += kRunScan) {
        bool differ = false;
        /*@ loop invariant 0 <= k <= kRunScan;
            loop invariant !differ ==> Equal(ids, i, i + k, id);
            loop assigns k, differ;
            loop variant kRunScan - k; */
        for (size_t k = 0; k < kRunScan; ++k)
            if (ids[i + k] != id) differ = true;
        if (differ) break;
    }
    if (scanned < n && scanned - i < kRunScan) {
        size_t stretch = kRunScan;
        /*@ loop invariant begin < i <= n && kRunScan <= stretch <= 2 * n + kRunScan;
            loop invariant Sorted(ids, begin, n) ==> Equal(ids, begin, i, id);
            loop assigns i, stretch;
            loop variant n - i; */
        for (; n - i >= stretch && ids[i + stretch - 1] == id; stretch *= 2) i += stretch;
        /*@ loop invariant begin < i <= n;
            loop invariant Sorted(ids, begin, n) ==> Equal(ids, begin, i, id);
            loop assigns i, stretch;
            loop variant stretch; */
        for (; stretch >= kRunScan; stretch /= 2)
            if (n - i >= stretch && ids[i + stretch - 1] == id) i += stretch;
    }
    /*@ loop invariant begin < i <= n;
        loop invariant !gallops || Sorted(ids, begin, n) ==> Equal(ids, begin, i, id);
        loop assigns i;
        loop variant n - i; */
    while (i < n && ids[i] == id) ++i;
    return i;
}
