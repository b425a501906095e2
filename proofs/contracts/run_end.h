// What Ids::run_end() of native/kernels/segment_ids.h promises: run_end.c shows it, and segments.c relies on it.
#ifndef RUN_END_H
#define RUN_END_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Any that native/parameters.def allows.
extern const size_t kRunScan, kGallopRows;

/*@ predicate RunParameters = 1 <= kRunScan <= 4096 && 1 <= kGallopRows <= 0x10000000000;
    predicate Sorted(int64_t *ids, integer b, integer n) =
      \forall integer j, k; b <= j <= k < n ==> ids[j] <= ids[k];
    predicate Equal(int64_t *ids, integer b, integer e, integer id) = \forall integer j; b <= j < e ==> ids[j] == id;
*/

/*@ requires i < n <= 0x4000000000000000 && \valid_read(ids + (i .. n - 1)) && RunParameters;
    assigns \nothing;
    ensures Inside: i < \result <= n;
    ensures Run: !gallops || Sorted(ids, i, n) ==> Equal(ids, i, \result, ids[i]);
    ensures End: \result < n ==> ids[\result] != ids[i]; */
size_t run_end(const int64_t *ids, size_t i, size_t n, bool gallops);

#endif
