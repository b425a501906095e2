// SegmentMax of one column by the scalar walk, block after block, as native/kernels/segment.h has it.
//
// Restated in C, since Frama-C reads no C++:
//   highest          native/order.h, of keys
//   struct Walk      native/kernels.h, SegmentWalk, with a column's members
//   fill, steps_to   native/kernels/segment_walk.h
//   has_row, sorted  native/kernels/segment_ids.h
//   run_end          native/kernels/segment_ids.h, what it promises (run_end.h); run_end.c has its text
//   highest_of, one_segment, short_segments, goes_on_after, segment_column, segment_rows
//                    native/kernels/segment.h, but for the loops over vectors (single_rows, VectorSegments)
//                    and the branch of segment_column for long runs
//   segment          native/segment.cpp, take() and the fill at the end, on one thread
// What differs: elements are their keys, whose order is that of integers (here int32_t); ids are int64_t; a block is
// [begin, end) of all rows where the kernels are given the address of its first row; the walk is a global variable.
//
// The ids may be anything: what is asked of them is the result, not a precondition.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run_end.h"

typedef int32_t Key;

struct Walk {
    Key *out;
    int64_t num_segments;
    Key fill;
    bool is_filled, gallops, checks, is_unsorted;
    int64_t last_id, previous, written;
};

struct ColumnWalk {
    int64_t previous;
    Key best;
};

static struct Walk walk;
static struct ColumnWalk at;

// Any that native/parameters.def allows.
extern const size_t kShort, kOrderBlock;

/*@ // Ids that SegmentMax accepts.
    predicate Good(int64_t *ids, integer b, integer n) =
      (b < n ==> ids[b] >= 0) && \forall integer j; b < j < n ==> ids[j - 1] <= ids[j];

    logic integer clamped(integer id, integer S) = id < S ? id : S;

    // What SegmentMax is, of the first n rows and the segments up to `last`: no element is above its segment's
    // output; each output is an element of its segment, or the fill value of one that has none.
    predicate Bound(Key *out, Key *x, int64_t *ids, integer n, integer S, integer last) =
      \forall integer j; 0 <= j < n ==> 0 <= ids[j] && (ids[j] < S ==> ids[j] <= last && out[ids[j]] >= x[j]);
    predicate Element(Key *out, Key *x, int64_t *ids, integer n, integer s) =
      \exists integer j; 0 <= j < n && ids[j] == s && out[s] == x[j];
    predicate Empty(int64_t *ids, integer n, integer s) = \forall integer j; 0 <= j < n ==> ids[j] != s;
    predicate Member(Key *out, Key *x, int64_t *ids, integer n, integer S, integer last, integer fill) =
      \forall integer s; 0 <= s <= last && s < S ==>
        Element(out, x, ids, n, s) || (out[s] == fill && Empty(ids, n, s));

    // After n rows with good ids.
    predicate Stands(Key *out, Key *x, int64_t *ids, integer n, integer S, integer previous, integer fill) =
      Bound(out, x, ids, n, S, previous) && Member(out, x, ids, n, S, previous, fill) &&
      previous == (n == 0 ? -1 : clamped(ids[n - 1], S));

    predicate Parameters = RunParameters && 1 <= kShort <= 4096 && 1 <= kOrderBlock <= 65536;
    predicate Memory(Key *x, int64_t *ids, integer n) =
      (walk.gallops ==> !walk.checks) && 0 <= walk.num_segments < INT64_MAX && n <= 0x4000000000000000 &&
      Parameters && \valid(walk.out + (0 .. walk.num_segments - 1)) &&
      \valid_read(x + (0 .. n - 1)) && \valid_read(ids + (0 .. n - 1)) &&
      \separated(walk.out + (0 .. walk.num_segments - 1), x + (0 .. n - 1)) &&
      \separated(walk.out + (0 .. walk.num_segments - 1), ids + (0 .. n - 1));

    // What lies past the last row's segment, if the output was filled before.
    predicate Rest(integer previous) =
      walk.is_filled ==> \forall integer s; previous < s < walk.num_segments ==> walk.out[s] == walk.fill;

    // The walk checks the ids, or they are good: else nothing is said of the result, and only that of the memory.
    predicate Right(int64_t *ids, integer n) = walk.checks || Good(ids, 0, n);
*/

/*@ assigns \nothing;
    ensures \result >= a && \result >= b && (\result == a || \result == b); */
static Key highest(Key a, Key b) { return a < b ? b : a; }

/*@ assigns \nothing;
    ensures \result <==> 0 <= id < walk.num_segments; */
static bool has_row(int64_t id) { return 0 <= id && id < walk.num_segments; }

/*@ requires 0 <= from && to <= walk.num_segments;
    requires \valid(walk.out + (0 .. walk.num_segments - 1));
    assigns walk.out[from .. to - 1];
    ensures !walk.is_filled ==>
      \forall integer s; from <= s < to && walk.written <= s ==> walk.out[s] == walk.fill;
    ensures \forall integer s; from <= s < to && (walk.is_filled || s < walk.written) ==>
      walk.out[s] == \old(walk.out[s]); */
static void fill(int64_t from, int64_t to) {
    if (from < walk.written) from = walk.written;
    if (from >= to || walk.is_filled) return;
    /*@ loop invariant from <= s <= to;
        loop invariant \forall integer t; from <= t < s ==> walk.out[t] == walk.fill;
        loop assigns s, walk.out[from .. to - 1];
        loop variant to - s; */
    for (int64_t s = from; s < to; ++s) walk.out[s] = walk.fill;
}

/*@ requires previous < INT64_MAX;
    assigns walk.written, walk.is_unsorted;
    ensures \result <==> (id >= previous || !walk.checks);
    ensures id >= previous ==> walk.written == \old(walk.written) && walk.is_unsorted == \old(walk.is_unsorted);
    ensures id < previous ==> walk.is_unsorted == walk.checks;
    ensures walk.written >= \old(walk.written); */
static bool steps_to(int64_t previous, int64_t id) {
    if (id >= previous) return true;
    if (walk.written <= previous) walk.written = previous + 1;
    walk.is_unsorted = walk.checks;
    return !walk.checks;
}

/*@ requires begin < end && \valid_read(ids + (begin .. end - 1)) && Parameters;
    assigns \nothing;
    ensures \result <==> Good(ids, begin, end); */
static bool sorted(const int64_t *ids, size_t begin, size_t end) {
    if (ids[begin] < 0) return false;
    /*@ loop invariant begin + 1 <= b <= end;
        loop invariant Good(ids, begin, b);
        loop assigns b;
        loop variant end - b; */
    for (size_t b = begin + 1; b < end;) {
        const size_t e = end - b < kOrderBlock ? end : b + kOrderBlock;
        int64_t down = 0;
        /*@ loop invariant b <= i <= e;
            loop invariant down == 0 ==> Good(ids, begin, i);
            loop invariant down != 0 ==> !Good(ids, begin, i);
            loop assigns i, down;
            loop variant e - i; */
        for (size_t i = b; i < e; ++i)
            if (ids[i] < ids[i - 1]) down = 1;
        if (down != 0) return false;
        b = e;
    }
    return true;
}

/*@ requires begin < end && \valid_read(x + (begin .. end - 1));
    assigns \nothing;
    ensures \forall integer j; begin <= j < end ==> \result >= x[j];
    ensures \exists integer j; begin <= j < end && \result == x[j]; */
static Key highest_of(const Key *x, size_t begin, size_t end) {
    Key best = x[begin];
    /*@ loop invariant begin + 1 <= i <= end;
        loop invariant \forall integer j; begin <= j < i ==> best >= x[j];
        loop invariant \exists integer j; begin <= j < i && best == x[j];
        loop assigns i, best;
        loop variant end - i; */
    for (size_t i = begin + 1; i < end; ++i) best = highest(best, x[i]);
    return best;
}

// Rows begin to end are of segment `id`; the walk has taken those before.
/*@ requires begin < end <= n && Memory(x, ids, n) && 0 <= id < walk.num_segments;
    requires -1 <= walk.previous <= walk.num_segments;
    requires Right(ids, n) ==> \forall integer j; begin <= j < end ==> ids[j] == id;
    requires Right(ids, n) ==> walk.written == 0 && walk.previous <= id && Rest(walk.previous) &&
      Stands(walk.out, x, ids, begin, walk.num_segments, walk.previous, walk.fill);
    requires 0 <= walk.written;
    assigns walk.previous, walk.out[0 .. walk.num_segments - 1];
    ensures walk.previous == id;
    ensures Right(ids, n) ==> Rest(walk.previous);
    ensures Right(ids, n) ==> Stands(walk.out, x, ids, end, walk.num_segments, walk.previous, walk.fill); */
static void one_segment(int64_t id, const Key *x, const int64_t *ids, size_t begin, size_t end, size_t n) {
    const bool resumes = id == walk.previous;
    if (!resumes) {
        fill(walk.previous + 1, id);
        walk.previous = id;
    }
    const Key best = highest_of(x, begin, end);
    walk.out[id] = resumes ? highest(walk.out[id], best) : best;
    /*@ assert Bound: Right(ids, n) ==> Bound(walk.out, x, ids, end, walk.num_segments, id); */
    /*@ assert This: Right(ids, n) ==> Element(walk.out, x, ids, end, id); */
    /*@ assert Same: Right(ids, n) ==> \forall integer s; 0 <= s < id && s <= \at(walk.previous, Pre) ==>
          walk.out[s] == \at(walk.out[s], Pre); */
    /*@ assert SameElement: Right(ids, n) ==> \forall integer s; 0 <= s < id && s <= \at(walk.previous, Pre) ==>
          Element{Pre}(walk.out, x, ids, begin, s) ==> Element(walk.out, x, ids, end, s); */
    /*@ assert SameEmpty: Right(ids, n) ==> \forall integer s; 0 <= s < id ==>
          Empty{Pre}(ids, begin, s) ==> Empty(ids, end, s); */
    /*@ assert Filled: Right(ids, n) ==> \forall integer s; \at(walk.previous, Pre) < s < id ==>
          walk.out[s] == walk.fill; */
    /*@ assert Empty: Right(ids, n) ==> \forall integer s; \at(walk.previous, Pre) < s < id ==> Empty(ids, end, s); */
}

// The body of the loop of short_segments, after its tests.
/*@ requires i < n && Memory(x, ids, n) && 0 <= id < walk.num_segments && id == ids[i];
    requires -1 <= previous <= walk.num_segments && 0 <= walk.written;
    requires Right(ids, n) ==> walk.written == 0 && previous <= id && Rest(previous) &&
      Stands(walk.out, x, ids, i, walk.num_segments, previous, walk.fill);
    requires Right(ids, n) && id == previous ==> best == walk.out[previous];
    assigns walk.out[0 .. walk.num_segments - 1];
    ensures Right(ids, n) ==> Rest(id);
    ensures \result == walk.out[id];
    ensures Right(ids, n) ==> Stands(walk.out, x, ids, i + 1, walk.num_segments, id, walk.fill); */
static Key short_row(const Key *x, const int64_t *ids, size_t i, size_t n, int64_t id, int64_t previous, Key best) {
    if (id > previous + 1) fill(previous + 1, id);
    const Key before = id == previous ? best : INT32_MIN;
    best = highest(before, x[i]);
    walk.out[id] = best;
    /*@ assert Bound: Right(ids, n) ==> Bound(walk.out, x, ids, i + 1, walk.num_segments, id); */
    /*@ assert This: Right(ids, n) ==> Element(walk.out, x, ids, i + 1, id); */
    /*@ assert Same: Right(ids, n) ==> \forall integer s; 0 <= s < id && s <= previous ==>
          walk.out[s] == \at(walk.out[s], Pre); */
    /*@ assert SameElement: Right(ids, n) ==> \forall integer s; 0 <= s < id && s <= previous ==>
          Element{Pre}(walk.out, x, ids, i, s) ==> Element(walk.out, x, ids, i + 1, s); */
    /*@ assert SameEmpty: Right(ids, n) ==> \forall integer s; 0 <= s < id ==>
          Empty{Pre}(ids, i, s) ==> Empty(ids, i + 1, s); */
    /*@ assert Filled: Right(ids, n) ==> \forall integer s; previous < s < id ==> walk.out[s] == walk.fill; */
    /*@ assert Empty: Right(ids, n) ==> \forall integer s; previous < s < id ==> Empty(ids, i + 1, s); */
    return best;
}

// Rows i to stop of short segments, or up to the first that lies outside the output or ends the walk.
/*@ requires Memory(x, ids, n) && i <= stop <= n;
    requires -1 <= at.previous <= walk.num_segments && 0 <= walk.written;
    requires Right(ids, n) ==> walk.written == 0 && Rest(at.previous) &&
      Stands(walk.out, x, ids, i, walk.num_segments, at.previous, walk.fill);
    requires Right(ids, n) && 0 <= at.previous < walk.num_segments && i < stop && ids[i] == at.previous ==>
      at.best == walk.out[at.previous];
    requires walk.checks ==> Good(ids, 0, i);
    requires !walk.is_unsorted;
    assigns at.previous, at.best, walk.written, walk.is_unsorted, walk.out[0 .. walk.num_segments - 1];
    ensures i <= \result <= stop && 0 <= walk.written;
    ensures -1 <= at.previous <= walk.num_segments;
    ensures i < stop && 0 <= ids[i] < walk.num_segments && !walk.is_unsorted ==> i < \result;
    ensures \result > i ==> 0 <= at.previous < walk.num_segments && at.best == walk.out[at.previous];
    ensures walk.checks ==> Good(ids, 0, \result);
    ensures walk.is_unsorted ==> walk.checks && !Good(ids, 0, n);
    ensures Right(ids, n) && !walk.is_unsorted ==> walk.written == 0 && Rest(at.previous) &&
      Stands(walk.out, x, ids, \result, walk.num_segments, at.previous, walk.fill); */
static size_t short_segments(const Key *x, const int64_t *ids, size_t n, size_t i, size_t stop) {
    int64_t previous = at.previous;
    Key best = at.best;
    /*@ loop invariant Place: \at(i, Pre) <= i <= stop && 0 <= walk.written && !walk.is_unsorted;
        loop invariant Previous: -1 <= previous <= walk.num_segments;
        loop invariant Right: Right(ids, n) ==> walk.written == 0 && Rest(previous) &&
          Stands(walk.out, x, ids, i, walk.num_segments, previous, walk.fill);
        loop invariant Taken: i > \at(i, Pre) ==> 0 <= previous < walk.num_segments && best == walk.out[previous];
        loop invariant Resumed: Right(ids, n) && 0 <= previous < walk.num_segments && i < stop &&
          ids[i] == previous ==> best == walk.out[previous];
        loop invariant Good: walk.checks ==> Good(ids, 0, i);
        loop assigns i, previous, best, walk.written, walk.is_unsorted, walk.out[0 .. walk.num_segments - 1];
        loop variant stop - i; */
    for (; i < stop; ++i) {
        const int64_t id = ids[i];
        if (!has_row(id) || !steps_to(previous, id)) break;
        /*@ assert Step: walk.checks ==> i > 0 ==> ids[i - 1] <= id; */
        best = short_row(x, ids, i, n, id, previous, best);
        previous = id;
    }
    at.previous = previous;
    at.best = best;
    return i;
}

// Good ids do not decrease over any distance.
/*@ ghost
  /@ requires b < n && \valid_read(ids + (b .. n - 1));
     assigns \nothing;
     ensures Good(ids, b, n) ==> Sorted(ids, b, n); @/
  static void in_order(const int64_t *ids, size_t b, size_t n) {
      /@ loop invariant b + 1 <= k <= n;
         loop invariant Good(ids, b, n) ==> Sorted(ids, b, k);
         loop assigns k;
         loop variant n - k; @/
      for (size_t k = b + 1; k < n; ++k) {
          /@ assert Good(ids, b, n) ==> ids[k - 1] <= ids[k]; @/
      }
  }
*/

// From a row on whose id is no segment's of the output. False: the block's last row is done with.
/*@ requires i < end <= n && Memory(x, ids, n) && !(0 <= ids[i] < walk.num_segments) && 0 <= walk.written;
    requires -1 <= at.previous <= walk.num_segments;
    requires Right(ids, n) ==> walk.written == 0 && Rest(at.previous) &&
      Stands(walk.out, x, ids, i, walk.num_segments, at.previous, walk.fill);
    requires walk.checks ==> Good(ids, 0, i);
    requires walk.checks && i > 0 && 0 <= ids[i] ==> ids[i - 1] <= ids[i];
    assigns at.previous, walk.is_unsorted, walk.out[0 .. walk.num_segments - 1];
    ensures -1 <= at.previous <= walk.num_segments;
    ensures \result ==> !walk.is_unsorted && !Right(ids, n) && at.previous == \old(at.previous);
    ensures walk.is_unsorted ==> walk.checks && !Good(ids, 0, n);
    ensures !\result && !walk.is_unsorted ==> at.previous == walk.num_segments;
    ensures !walk.is_unsorted && walk.checks ==> Good(ids, 0, end);
    ensures !walk.is_unsorted && Right(ids, n) ==>
      Stands(walk.out, x, ids, end, walk.num_segments, at.previous, walk.fill); */
static bool goes_on_after(const Key *x, const int64_t *ids, size_t i, size_t end, size_t n) {
    const int64_t id = ids[i];
    if (id < 0) {
        walk.is_unsorted = walk.checks;
        return !walk.checks;
    }
    walk.is_unsorted = walk.checks && !sorted(ids, i, end);
    //@ ghost in_order(ids, i, end);
    /*@ assert Rest: Right(ids, n) && !walk.is_unsorted ==> Good(ids, i, end); */
    /*@ assert Past: Right(ids, n) && !walk.is_unsorted ==>
          \forall integer j; i <= j < end ==> walk.num_segments <= ids[j]; */
    fill(at.previous + 1, walk.num_segments);
    /*@ assert Same: \forall integer s; 0 <= s <= at.previous && s < walk.num_segments ==>
          walk.out[s] == \at(walk.out[s], Pre); */
    /*@ assert Bound: Right(ids, n) && !walk.is_unsorted ==>
          Bound(walk.out, x, ids, end, walk.num_segments, walk.num_segments); */
    /*@ assert SameElement: Right(ids, n) ==> \forall integer s; 0 <= s <= at.previous && s < walk.num_segments ==>
          Element{Pre}(walk.out, x, ids, i, s) ==> Element(walk.out, x, ids, end, s); */
    /*@ assert SameEmpty: Right(ids, n) && !walk.is_unsorted ==> \forall integer s; 0 <= s < walk.num_segments ==>
          Empty{Pre}(ids, i, s) ==> Empty(ids, end, s); */
    /*@ assert Filled: Right(ids, n) ==> \forall integer s; at.previous < s < walk.num_segments ==>
          walk.out[s] == walk.fill; */
    /*@ assert Empty: Right(ids, n) && !walk.is_unsorted ==>
          \forall integer s; at.previous < s < walk.num_segments ==> Empty(ids, end, s); */
    at.previous = walk.num_segments;
    return false;
}

// Rows i to end, whose first is not of the last row's segment.
/*@ requires i <= end <= n && Memory(x, ids, n) && 0 <= walk.written && !walk.is_unsorted;
    requires -1 <= walk.previous <= walk.num_segments;
    requires Right(ids, n) ==> walk.written == 0 && Rest(walk.previous) &&
      Stands(walk.out, x, ids, i, walk.num_segments, walk.previous, walk.fill);
    requires i < end && 0 <= walk.previous < walk.num_segments ==> ids[i] != walk.previous;
    requires walk.checks ==> Good(ids, 0, i);
    requires walk.checks && 0 < i < end && walk.num_segments <= ids[i] ==> ids[i - 1] <= ids[i];
    assigns at.previous, at.best, walk.previous, walk.written, walk.is_unsorted, walk.out[0 .. walk.num_segments - 1];
    ensures -1 <= walk.previous <= walk.num_segments && 0 <= walk.written;
    ensures walk.is_unsorted ==> walk.checks && !Good(ids, 0, n);
    ensures walk.checks && !walk.is_unsorted ==> Good(ids, 0, end);
    ensures Right(ids, n) && !walk.is_unsorted ==> walk.written == 0 && Rest(walk.previous) &&
      Stands(walk.out, x, ids, end, walk.num_segments, walk.previous, walk.fill); */
static void segment_column(const Key *x, const int64_t *ids, size_t i, size_t end, size_t n) {
    at.previous = walk.previous;
    at.best = INT32_MIN;
    /*@ loop invariant Place: \at(i, Pre) <= i <= end && 0 <= walk.written;
        loop invariant Previous: -1 <= at.previous <= walk.num_segments;
        loop invariant Right: Right(ids, n) && !walk.is_unsorted ==> walk.written == 0 && Rest(at.previous) &&
          Stands(walk.out, x, ids, i, walk.num_segments, at.previous, walk.fill);
        loop invariant Past: Right(ids, n) && !walk.is_unsorted && \at(i, Pre) < i ==> at.previous < walk.num_segments;
        loop invariant Resumed: Right(ids, n) && !walk.is_unsorted && 0 <= at.previous < walk.num_segments && i < end &&
          ids[i] == at.previous ==>
          at.best == walk.out[at.previous];
        loop invariant Good: walk.checks ==> Good(ids, 0, i);
        loop invariant Unsorted: walk.is_unsorted ==> walk.checks && !Good(ids, 0, n);
        loop assigns i, at.previous, at.best, walk.written, walk.is_unsorted, walk.out[0 .. walk.num_segments - 1];
        loop variant end - i + (walk.is_unsorted ? 0 : 1); */
    while (i < end && !walk.is_unsorted) {
        const int64_t id = ids[i];
        /*@ assert Before: walk.checks && i > 0 && walk.num_segments <= id ==> ids[i - 1] <= id; */
        if (!has_row(id)) {
            if (!goes_on_after(x, ids, i, end, n)) break;
            ++i;
        } else {
            const size_t stop = end - i < kShort ? end : i + kShort;
            i = short_segments(x, ids, n, i, stop);
        }
    }
    if (at.previous == walk.previous) return;
    walk.previous = at.previous;
}

// A block: rows begin to end.
/*@ requires begin <= end <= n && Memory(x, ids, n) && 0 <= walk.written && !walk.is_unsorted;
    requires -1 <= walk.previous <= walk.num_segments;
    requires Right(ids, n) ==> walk.written == 0 && Rest(walk.previous) &&
      Stands(walk.out, x, ids, begin, walk.num_segments, walk.previous, walk.fill);
    requires walk.checks ==> Good(ids, 0, begin) && walk.last_id == (begin == 0 ? 0 : ids[begin - 1]);
    assigns at.previous, at.best, walk.previous, walk.written, walk.is_unsorted, walk.last_id,
      walk.out[0 .. walk.num_segments - 1];
    ensures -1 <= walk.previous <= walk.num_segments && 0 <= walk.written;
    ensures walk.is_unsorted ==> walk.checks && !Good(ids, 0, n);
    ensures walk.checks && !walk.is_unsorted ==>
      Good(ids, 0, end) && walk.last_id == (end == 0 ? 0 : ids[end - 1]);
    ensures Right(ids, n) && !walk.is_unsorted ==> walk.written == 0 && Rest(walk.previous) &&
      Stands(walk.out, x, ids, end, walk.num_segments, walk.previous, walk.fill); */
static void segment_rows(const Key *x, const int64_t *ids, size_t begin, size_t end, size_t n) {
    if (begin == end) return;
    size_t i = begin;
    if (walk.checks) {
        walk.is_unsorted = ids[begin] < walk.last_id;
        walk.last_id = ids[end - 1];
        if (walk.is_unsorted) return;
    }
    if (has_row(walk.previous) && ids[begin] == walk.previous) {
        //@ ghost in_order(ids, begin, end);
        i = run_end(ids, begin, end, walk.gallops);
        one_segment(walk.previous, x, ids, begin, i, n);
    }
    segment_column(x, ids, i, end, n);
}

// SegmentMax, in blocks. False: the ids are wrong.
/*@ requires Memory(x, ids, n) && 0 < block && Rest(-1) && !walk.is_unsorted;
    requires walk.previous == -1 && walk.last_id == 0 && walk.written == 0;
    assigns at, walk.previous, walk.written, walk.is_unsorted, walk.last_id, walk.out[0 .. walk.num_segments - 1];
    ensures Unsorted: !\result ==> walk.checks && !Good(ids, 0, n);
    ensures Sorted: \result && walk.checks ==> Good(ids, 0, n);
    ensures Bound: \result && Right(ids, n) ==>
      \forall integer j; 0 <= j < n && ids[j] < walk.num_segments ==> walk.out[ids[j]] >= x[j];
    ensures Member: \result && Right(ids, n) ==> \forall integer s; 0 <= s < walk.num_segments ==>
      Element(walk.out, x, ids, n, s) || (walk.out[s] == walk.fill && Empty(ids, n, s)); */
bool segment(const Key *x, const int64_t *ids, size_t n, size_t block) {
    /*@ loop invariant 0 <= row <= n && -1 <= walk.previous <= walk.num_segments && 0 <= walk.written;
        loop invariant !walk.is_unsorted;
        loop invariant Right: Right(ids, n) ==> walk.written == 0 && Rest(walk.previous) &&
          Stands(walk.out, x, ids, row, walk.num_segments, walk.previous, walk.fill);
        loop invariant Good: walk.checks ==> Good(ids, 0, row) && walk.last_id == (row == 0 ? 0 : ids[row - 1]);
        loop assigns row, at.previous, at.best, walk.previous, walk.written, walk.is_unsorted, walk.last_id,
          walk.out[0 .. walk.num_segments - 1];
        loop variant n - row; */
    for (size_t row = 0; row < n;) {
        const size_t rows = block < n - row ? block : n - row;
        segment_rows(x, ids, row, row + rows, n);
        if (walk.is_unsorted) return false;
        row += rows;
    }
    walk.written = 0;  // the walk that fills the rest is another one
Walked:
    fill(walk.previous + 1, walk.num_segments);
    /*@ assert Same: \forall integer s; 0 <= s <= walk.previous && s < walk.num_segments ==>
          walk.out[s] == \at(walk.out[s], Walked); */
    /*@ assert SameElement: Right(ids, n) ==> \forall integer s; 0 <= s <= walk.previous && s < walk.num_segments ==>
          Element{Walked}(walk.out, x, ids, n, s) ==> Element(walk.out, x, ids, n, s); */
    /*@ assert Below: Right(ids, n) ==> \forall integer s; 0 <= s <= walk.previous && s < walk.num_segments ==>
          Element(walk.out, x, ids, n, s) || (walk.out[s] == walk.fill && Empty(ids, n, s)); */
    /*@ assert Filled: Right(ids, n) ==> \forall integer s; walk.previous < s < walk.num_segments ==>
          walk.out[s] == walk.fill; */
    /*@ assert Empty: Right(ids, n) ==> \forall integer s; walk.previous < s < walk.num_segments ==>
          Empty(ids, n, s); */
    return true;
}
