// What AVX-512 does better than the loops: short segments, a vector of rows at a time.
//
// Included by simd_v4.h.

// The instructions by lane width, under one name each.
struct Lanes32i {
    using Lane = std::int32_t;
    using Mask = __mmask16;
    static constexpr unsigned kCount = 16;
    static __m512i splat(Lane value) { return _mm512_set1_epi32(value); }
    static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
    static __m512i sub(__m512i a, __m512i b) { return _mm512_sub_epi32(a, b); }
    static __m512i select(Mask where, __m512i yes, __m512i no) {
        return _mm512_mask_mov_epi32(no, where, yes);
    }
    static Mask less(__m512i a, __m512i b) { return _mm512_cmplt_epi32_mask(a, b); }
    static __m512i highest(Mask where, __m512i a, __m512i b) { return _mm512_mask_max_epi32(a, where, a, b); }
    static __m512i compress(Mask lanes, __m512i v) { return _mm512_maskz_compress_epi32(lanes, v); }
    template <int n>
    static __m512i moved_up(__m512i v) {
        return _mm512_alignr_epi32(v, v, 16 - n);
    }
    static __m512i splat_last(__m512i v) { return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v); }
};
struct Lanes64i {
    using Lane = std::int64_t;
    using Mask = __mmask8;
    static constexpr unsigned kCount = 8;
    static __m512i splat(Lane value) { return _mm512_set1_epi64(value); }
    static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
    static __m512i sub(__m512i a, __m512i b) { return _mm512_sub_epi64(a, b); }
    static __m512i select(Mask where, __m512i yes, __m512i no) {
        return _mm512_mask_mov_epi64(no, where, yes);
    }
    static Mask less(__m512i a, __m512i b) { return _mm512_cmplt_epi64_mask(a, b); }
    static __m512i highest(Mask where, __m512i a, __m512i b) { return _mm512_mask_max_epi64(a, where, a, b); }
    static __m512i compress(Mask lanes, __m512i v) { return _mm512_maskz_compress_epi64(lanes, v); }
    template <int n>
    static __m512i moved_up(__m512i v) {
        return _mm512_alignr_epi64(v, v, 8 - n);
    }
    static __m512i splat_last(__m512i v) { return _mm512_permutexvar_epi64(_mm512_set1_epi64(7), v); }
};

// Keys in lanes: of the type's own width, or of 32 bits for narrower types, whose floats are moved to the
// top half of the lane. Lanes compare as signed integers; unsigned ones are moved down by half their range.
template <class T>
struct KeyLanes {
    static constexpr std::size_t kSize = sizeof(typename T::Bits);
    static constexpr bool is_signed = std::is_signed_v<typename T::Bits>;
    static constexpr bool is_wide_float = T::is_float && kSize >= 4;
    using Lanes = std::conditional_t<kSize == 8, Lanes64i, Lanes32i>;
    using Lane = typename Lanes::Lane;
    using Mask = typename Lanes::Mask;
    static constexpr int kUp = T::is_float && kSize == 2 ? 16 : 0;
    static constexpr Lane kHalfRange = !is_signed && kSize >= 4 ? std::numeric_limits<Lane>::min() : 0;

    static __m512i load(const Item<T>* from) { return key(widened(from)); }

    // The first `count` lanes.
    static void store(unsigned count, Item<T>* to, __m512i keys) {
        const unsigned lanes = (1U << count) - 1;
        const __m512i row = bits(keys);
        if constexpr (kSize == 8) _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(lanes), row);
        if constexpr (kSize == 4) _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(lanes), row);
        if constexpr (kSize == 2)
            _mm512_mask_cvtepi32_storeu_epi16(to, static_cast<__mmask16>(lanes), _mm512_srli_epi32(row, kUp));
        if constexpr (kSize == 1) _mm512_mask_cvtepi32_storeu_epi8(to, static_cast<__mmask16>(lanes), row);
    }

    static __m512i splat(typename T::Bits bits) { return Lanes::splat(lane(bits)); }

private:
    // T's order at a lane's width, for floats.
    template <class Order>
    struct OrderOf {
        using Type = FloatOrder<Lane, static_cast<Lane>(static_cast<Lane>(Order::kInfinity) << kUp)>;
    };

    static Lane lane(typename T::Bits bits) {
        if constexpr (T::is_float)
            return OrderOf<T>::Type::key(static_cast<Lane>(static_cast<Lane>(bits) * (Lane{1} << kUp)));
        else
            return static_cast<Lane>(static_cast<Lane>(bits) ^ kHalfRange);
    }
    static __m512i widened(const Item<T>* from) {
        if constexpr (kSize >= 4) return _mm512_loadu_si512(from);
        if constexpr (kSize == 2) {
            const __m256i items = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
            return is_signed ? _mm512_slli_epi32(_mm512_cvtepi16_epi32(items), kUp)
                             : _mm512_cvtepu16_epi32(items);
        }
        const __m128i items = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        const __m512i wide = is_signed ? _mm512_cvtepi8_epi32(items) : _mm512_cvtepu8_epi32(items);
        return std::is_same_v<T, BoolOrder> ? _mm512_min_epi32(wide, Lanes::splat(1)) : wide;
    }
    static __m512i key(__m512i b) {
        if constexpr (T::is_float) {
            using Order = typename OrderOf<T>::Type;
            const __m512i positive = Lanes::add(b, Lanes::splat(static_cast<Lane>(Order::kPositiveStep)));
            const __m512i negative = Lanes::sub(Lanes::splat(static_cast<Lane>(Order::kNegativeBase)), b);
            return Lanes::select(Lanes::less(b, _mm512_setzero_si512()), negative, positive);
        } else if constexpr (kHalfRange != 0) {
            return _mm512_xor_si512(b, Lanes::splat(kHalfRange));
        } else {
            return b;
        }
    }
    static __m512i bits(__m512i k) {
        if constexpr (T::is_float) {
            using Order = typename OrderOf<T>::Type;
            const __m512i positive = Lanes::sub(k, Lanes::splat(static_cast<Lane>(Order::kPositiveStep)));
            const __m512i negative = Lanes::sub(Lanes::splat(static_cast<Lane>(Order::kNegativeBase)), k);
            const auto is_positive = Lanes::less(Lanes::splat(Order::kMinusZeroKey), k);
            const auto is_nan = Lanes::less(Lanes::splat(Order::kInfinityKey), k);
            return Lanes::select(is_nan, Lanes::splat(Order::kNaN),
                                 Lanes::select(is_positive, positive, negative));
        } else if constexpr (kHalfRange != 0) {
            return _mm512_xor_si512(k, Lanes::splat(kHalfRange));
        } else {
            return k;
        }
    }
};

// Bit k: ids[k] and ids[k + 1] are equal.
template <unsigned count>
static inline unsigned equal_neighbours(const Loose<std::int64_t>* ids) {
    unsigned equal = 0;
    for (unsigned k = 0; k < count; k += 8) {
        const __m512i here = _mm512_loadu_si512(ids + k), next = _mm512_loadu_si512(ids + k + 1);
        equal |= static_cast<unsigned>(_mm512_cmpeq_epi64_mask(here, next)) << k;
    }
    return equal;
}
template <unsigned count>
static inline unsigned equal_neighbours(const Loose<std::int32_t>* ids) {
    constexpr __mmask16 kLanes = (1U << count) - 1;
    const __m512i here = _mm512_maskz_loadu_epi32(kLanes, ids),
                  next = _mm512_maskz_loadu_epi32(kLanes, ids + 1);
    return _mm512_mask_cmpeq_epi32_mask(kLanes, here, next);
}

// A lane's key becomes the highest of its segment's up to there, in steps of 1, 2, 4 and 8 lanes: `joins` has
// the lanes whose row belongs with the row before, and a step of n may be taken where n joins lie in a row.
template <class Lanes>
static inline __m512i scan(__m512i keys, unsigned joins) {
    using Mask = typename Lanes::Mask;
    keys = Lanes::highest(static_cast<Mask>(joins), keys, Lanes::template moved_up<1>(keys));
    joins &= joins << 1;
    keys = Lanes::highest(static_cast<Mask>(joins), keys, Lanes::template moved_up<2>(keys));
    joins &= joins << 2;
    keys = Lanes::highest(static_cast<Mask>(joins), keys, Lanes::template moved_up<4>(keys));
    if constexpr (Lanes::kCount == 16) {
        joins &= joins << 4;
        keys = Lanes::highest(static_cast<Mask>(joins), keys, Lanes::template moved_up<8>(keys));
    }
    return keys;
}

// Whole vectors of rows, as long as they lie inside the output, do not go back, and no long run begins.
// Between the first and the last row ids are taken to be in order; if they are not, the result is wrong, but
// every row from the first's to the last's is written, and none beyond.
template <class T, class Id>
static std::size_t take_short_segments(const SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids,
                                       std::size_t i, ColumnWalk<T>* at) {
    using Keys = KeyLanes<T>;
    using Lanes = typename Keys::Lanes;
    using Mask = typename Lanes::Mask;
    constexpr unsigned kCount = Lanes::kCount, kAll = (1U << kCount) - 1, kLast = 1U << (kCount - 1);
    constexpr std::size_t kRun = 64;
    const std::size_t start = i;
    auto* out = reinterpret_cast<Item<T>*>(walk->out);
    std::int64_t previous = at->previous;
    __m512i carry = Keys::splat(T::bits(at->best));
    for (; ids.n - i > kCount; i += kCount) {
        const std::int64_t first = ids[i], last = ids[i + kCount - 1];
        if (first < previous || first < 0 || last < first || !ids.has_row(last)) break;
        if (last == first && ids.n - i >= kRun && ids[i + kRun - 1] == first) break;
        const unsigned equal = equal_neighbours<kCount>(ids.ids + i);

        // What goes on from the rows before comes in after the scan, not before: a turn then waits for one
        // instruction of the last turn, not for all of them.
        const unsigned joins = equal << 1 & kAll;
        const unsigned starts = ~joins & ~1U & kAll;
        const unsigned before_starts = starts == 0 ? kAll : (starts & (~starts + 1)) - 1;
        const unsigned goes_on = first == previous ? before_starts : 0;
        __m512i keys = scan<Lanes>(Keys::load(items + i), joins);
        const __m512i last_key = Lanes::splat_last(keys);
        keys = Lanes::highest(static_cast<Mask>(goes_on), keys, carry);
        carry = Lanes::highest(static_cast<Mask>(goes_on == kAll ? kAll : 0), last_key, carry);

        // The lanes where a segment ends, the last lane's among them: it is stored again if it goes on.
        const unsigned ends = (~equal | kLast) & kAll;
        const auto count = static_cast<unsigned>(__builtin_popcount(ends));
        const __m512i row = Lanes::compress(static_cast<Mask>(ends), keys);
        if (first > previous + 1) fill<T>(walk, previous + 1, first);
        if (last - first == static_cast<std::int64_t>(count) - 1) {
            Keys::store(count, out + first, row);
        } else {
            Item<T> each[kCount];
            Keys::store(count, each, row);
            std::int64_t next = first;
            unsigned k = 0;
            for (unsigned left = ends; left != 0; left &= left - 1, ++k) {
                const std::int64_t id = ids[i + static_cast<unsigned>(__builtin_ctz(left))];
                if (id < next || id > last) continue;  // not in order
                for (; !walk->is_filled && next < id; ++next)
                    out[next].value = static_cast<typename T::Bits>(walk->fill);
                out[id] = each[k];
                next = id + 1;
            }
        }
        previous = last;
    }
    if (i > start) *at = {previous, T::key(out[previous].value)};
    return i;
}

template <class T, class Id>
struct VectorSegments {
    static constexpr auto take = take_short_segments<T, Id>;
};
