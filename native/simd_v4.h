// What AVX-512 does better than the loops: the maximum of two float32 or float64 arrays.
//
// Included by kernels.cpp for x86-64-v4 alone, after loops.h. VRANGE's maximum puts -0 below +0 and lets
// a number win over a NaN, so that NaNs are put back by a comparison: three instructions in place of six.

// VRANGE obeys the processor's modes: it would flush subnormals under "denormals are zero", and trap on a
// signalling NaN if somebody unmasked that. In such a thread the integer loops do the work. (In others a
// signalling NaN sets the sticky "invalid" flag, as NumPy's own maximum does.)
static inline bool float_modes_are_plain() {
    constexpr unsigned kDenormalsAreZero = 0x0040, kMasks = 0x1F80;
    return (_mm_getcsr() & (kDenormalsAreZero | kMasks)) == kMasks;
}

struct Lanes32 {
    using Vector = __m512;
    static constexpr std::size_t kCount = 16;
    static Vector load(const void* from) { return _mm512_loadu_ps(from); }
    static Vector load(const void* from, unsigned mask) {
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    }
    static void store(void* to, Vector v) { _mm512_storeu_ps(to, v); }
    static void store(void* to, unsigned mask, Vector v) {
        _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), v);
    }
    static Vector max(Vector a, Vector b, Vector nan) {
        return _mm512_mask_mov_ps(_mm512_range_ps(a, b, 5), _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), nan);
    }
    static Vector nan() { return _mm512_castsi512_ps(_mm512_set1_epi32(Float32::kNaN)); }
};

struct Lanes64 {
    using Vector = __m512d;
    static constexpr std::size_t kCount = 8;
    static Vector load(const void* from) { return _mm512_loadu_pd(from); }
    static Vector load(const void* from, unsigned mask) {
        return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), from);
    }
    static void store(void* to, Vector v) { _mm512_storeu_pd(to, v); }
    static void store(void* to, unsigned mask, Vector v) {
        _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), v);
    }
    static Vector max(Vector a, Vector b, Vector nan) {
        return _mm512_mask_mov_pd(_mm512_range_pd(a, b, 5), _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q), nan);
    }
    static Vector nan() { return _mm512_castsi512_pd(_mm512_set1_epi64(Float64::kNaN)); }
};

template <class T, class Lanes>
static void fold_pair_by_range(void* out, const void* const* in, std::size_t n) {
    if (!float_modes_are_plain()) return fold<T, 0, 1>(out, in, n);
    constexpr std::size_t kStep = Lanes::kCount;
    const auto nan = Lanes::nan();
    auto* to = static_cast<Item<T>*>(out);
    auto* a = static_cast<const Item<T>*>(in[0]);
    auto* b = static_cast<const Item<T>*>(in[1]);
    auto masked = [&](std::size_t i, std::size_t count) {
        unsigned mask = (1U << count) - 1;
        Lanes::store(to + i, mask, Lanes::max(Lanes::load(a + i, mask), Lanes::load(b + i, mask), nan));
    };
    std::size_t i = items_before_line<T>(out, n);
    if (i > 0) masked(0, i);
    for (; i + 2 * kStep <= n; i += 2 * kStep) {
        auto first = Lanes::max(Lanes::load(a + i), Lanes::load(b + i), nan);
        auto second = Lanes::max(Lanes::load(a + i + kStep), Lanes::load(b + i + kStep), nan);
        Lanes::store(to + i, first);
        Lanes::store(to + i + kStep, second);
    }
    for (; i < n; i += kStep) masked(i, n - i < kStep ? n - i : kStep);
}

template <>
constexpr auto kFoldTwo<Float32> = fold_pair_by_range<Float32, Lanes32>;
template <>
constexpr auto kFoldTwo<Float64> = fold_pair_by_range<Float64, Lanes64>;

// ---------------------------------------------------------------------------- short segments

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
