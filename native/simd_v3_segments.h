// What AVX2 does better than the loops: short segments, a vector of rows at a time.
//
// Included by simd_v3.h.

template <class T, class Id>
struct VectorSegments {
    static std::size_t take(const SegmentWalk*, const Item<T>*, const Ids<Id>&, std::size_t i,
                            ColumnWalk<T>*) {
        return i;
    }
};
