// Short segments with AVX-512: folds a vector of rows at a time, and writes to the output with compress and
// expand. segment_scan.h, at its width of 32 bytes, takes 1.2 to 1.6 times as long for segments of 1 to 120
// rows, and 1.1 to 1.3 times for 30 rows. segment.h includes this file inside its namespace. Lanes32i and
// Lanes64i give the instructions of both lane widths the same names.
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
    static Mask equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi32_mask(a, b); }
    static Mask differ(__m512i a, __m512i b) { return _mm512_cmpneq_epi32_mask(a, b); }
    static __m512i sign(__m512i v) { return _mm512_srai_epi32(v, 31); }
    // Loads ids. If all are less than half the range of Lane apart, their low halves suffice.
    static __m512i ids(unsigned lanes, const Unaligned<std::int32_t>* from) {
        return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), from);
    }
    static __m512i ids(unsigned lanes, const Unaligned<std::int64_t>* from) {
        const __m512i low = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), from),
                      high = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes >> 8), from + 8);
        const __m512i halves = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        return _mm512_permutex2var_epi32(low, halves, high);
    }
    static __m512i highest(Mask where, __m512i a, __m512i b) { return _mm512_mask_max_epi32(a, where, a, b); }
    static __m512i compress(Mask lanes, __m512i v) { return _mm512_maskz_compress_epi32(lanes, v); }
    static __m512i expand(__m512i others, Mask lanes, __m512i v) {
        return _mm512_mask_expand_epi32(others, lanes, v);
    }
    // Moves lanes down by n.
    static __m512i moved_down(__m512i v, unsigned n) {
        const __m512i from = add(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                 splat(static_cast<Lane>(n)));
        return _mm512_permutexvar_epi32(from, v);
    }
    // The vacated lanes come from `others`.
    template <int n>
    static __m512i moved_up(__m512i v, __m512i others) {
        return _mm512_alignr_epi32(v, others, 16 - n);
    }
    static __m512i moved_down_one(__m512i v, __m512i others) { return _mm512_alignr_epi32(others, v, 1); }
    template <class Id>
    static __m512i splat_from(const Id* from) {
        Lane low;
        __builtin_memcpy(&low, from, sizeof low);
        return splat(low);
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
    static Mask equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi64_mask(a, b); }
    static Mask differ(__m512i a, __m512i b) { return _mm512_cmpneq_epi64_mask(a, b); }
    static __m512i sign(__m512i v) { return _mm512_srai_epi64(v, 63); }
    static __m512i ids(unsigned lanes, const Unaligned<std::int32_t>* from) {
        return _mm512_cvtepi32_epi64(_mm256_maskz_loadu_epi32(static_cast<__mmask8>(lanes), from));
    }
    static __m512i ids(unsigned lanes, const Unaligned<std::int64_t>* from) {
        return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), from);
    }
    static __m512i highest(Mask where, __m512i a, __m512i b) { return _mm512_mask_max_epi64(a, where, a, b); }
    static __m512i compress(Mask lanes, __m512i v) { return _mm512_maskz_compress_epi64(lanes, v); }
    static __m512i expand(__m512i others, Mask lanes, __m512i v) {
        return _mm512_mask_expand_epi64(others, lanes, v);
    }
    // Moves lanes down by n.
    static __m512i moved_down(__m512i v, unsigned n) {
        const __m512i from = add(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), splat(static_cast<Lane>(n)));
        return _mm512_permutexvar_epi64(from, v);
    }
    // The vacated lanes come from `others`.
    template <int n>
    static __m512i moved_up(__m512i v, __m512i others) {
        return _mm512_alignr_epi64(v, others, 8 - n);
    }
    static __m512i moved_down_one(__m512i v, __m512i others) { return _mm512_alignr_epi64(others, v, 1); }
    template <class Id>
    static __m512i splat_from(const Unaligned<Id>* from) {
        return splat(from->value);
    }
    static __m512i splat_last(__m512i v) { return _mm512_permutexvar_epi64(_mm512_set1_epi64(7), v); }
};

// Keys in lanes of the type's own width, or of 32 bits for narrower types. 16-bit floats move to the top half
// of their lane. Lanes compare as signed integers; unsigned ones move down by half their range.
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

    static __m512i load(unsigned lanes, const Item<T>* from) { return key(widened(lanes, from)); }

    static void store(unsigned lanes, Item<T>* to, __m512i keys) {
        const __m512i row = bits(keys);
        if constexpr (kSize == 8) _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(lanes), row);
        if constexpr (kSize == 4) _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(lanes), row);
        if constexpr (kSize == 2)
            _mm512_mask_cvtepi32_storeu_epi16(to, static_cast<__mmask16>(lanes), _mm512_srli_epi32(row, kUp));
        if constexpr (kSize == 1) _mm512_mask_cvtepi32_storeu_epi8(to, static_cast<__mmask16>(lanes), row);
    }

    static __m512i splat(typename T::Bits bits) { return Lanes::splat(lane(bits)); }

private:
    // T's order at the width of a lane; for floats only.
    template <class Order>
    struct OrderOf {
        using Type =
            typename Order::template Widened<Lane,
                                             static_cast<Lane>(static_cast<Lane>(Order::kInfinity) << kUp)>;
    };

    static Lane lane(typename T::Bits bits) {
        if constexpr (T::is_float)
            return OrderOf<T>::Type::key(static_cast<Lane>(static_cast<Lane>(bits) * (Lane{1} << kUp)));
        else
            return static_cast<Lane>(static_cast<Lane>(bits) ^ kHalfRange);
    }
    static __m512i widened(unsigned lanes, const Item<T>* from) {
        if constexpr (kSize == 8) return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), from);
        if constexpr (kSize == 4) return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), from);
        if constexpr (kSize == 2) {
            const __m256i items = _mm256_maskz_loadu_epi16(static_cast<__mmask16>(lanes), from);
            return is_signed ? _mm512_slli_epi32(_mm512_cvtepi16_epi32(items), kUp)
                             : _mm512_cvtepu16_epi32(items);
        }
        const __m128i items = _mm_maskz_loadu_epi8(static_cast<__mmask16>(lanes), from);
        const __m512i wide = is_signed ? _mm512_cvtepi8_epi32(items) : _mm512_cvtepu8_epi32(items);
        return std::is_same_v<T, BoolOrder> ? _mm512_min_epi32(wide, Lanes::splat(1)) : wide;
    }
    // Flips the magnitude bits of negative lanes: FloatOrder's key and back, except for kPositiveStep, which
    // all lanes share.
    static __m512i flip_negative(__m512i v) {
        constexpr int kFlipMasked = 0x78;  // a ^ (b & c)
        return _mm512_ternarylogic_epi64(v, Lanes::sign(v), Lanes::splat(std::numeric_limits<Lane>::max()),
                                         kFlipMasked);
    }
    static __m512i key(__m512i b) {
        if constexpr (T::is_float) {
            using Order = typename OrderOf<T>::Type;
            return Lanes::add(flip_negative(b), Lanes::splat(static_cast<Lane>(Order::kPositiveStep)));
        } else if constexpr (kHalfRange != 0) {
            return _mm512_xor_si512(b, Lanes::splat(kHalfRange));
        } else {
            return b;
        }
    }
    static __m512i bits(__m512i k) {
        if constexpr (T::is_float) {
            using Order = typename OrderOf<T>::Type;
            const __m512i number =
                flip_negative(Lanes::sub(k, Lanes::splat(static_cast<Lane>(Order::kPositiveStep))));
            const auto is_nan = Order::ignores_nan ? Lanes::less(k, Lanes::splat(Order::kMinusInfinityKey))
                                                   : Lanes::less(Lanes::splat(Order::kInfinityKey), k);
            return Lanes::select(is_nan, Lanes::splat(Order::kNaN), number);
        } else if constexpr (kHalfRange != 0) {
            return _mm512_xor_si512(k, Lanes::splat(kHalfRange));
        } else {
            return k;
        }
    }
};

// Whether any id is higher than the next one.
template <unsigned count>
static inline bool goes_down(const Unaligned<std::int64_t>* ids, unsigned lanes) {
    unsigned down = 0;
    for (unsigned k = 0; k < count; k += 8) {
        const auto some = static_cast<__mmask8>(lanes >> k);
        const __m512i here = _mm512_maskz_loadu_epi64(some, ids + k),
                      next = _mm512_maskz_loadu_epi64(some, ids + k + 1);
        down |= _mm512_mask_cmpgt_epi64_mask(some, here, next);
    }
    return down != 0;
}
template <unsigned count>
static inline bool goes_down(const Unaligned<std::int32_t>* ids, unsigned lanes) {
    const auto some = static_cast<__mmask16>(lanes);
    const __m512i here = _mm512_maskz_loadu_epi32(some, ids), next = _mm512_maskz_loadu_epi32(some, ids + 1);
    return _mm512_mask_cmpgt_epi32_mask(some, here, next) != 0;
}

// Bit k: whether a lane contains base + k.
static inline std::uint64_t present(Lanes64i, __m512i ids, unsigned lanes, std::int64_t base) {
    const __m512i places = _mm512_sub_epi64(ids, _mm512_set1_epi64(base));
    const __m512i bits = _mm512_maskz_sllv_epi64(static_cast<__mmask8>(lanes), _mm512_set1_epi64(1), places);
    return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(bits));
}
static inline std::uint64_t present(Lanes32i, __m512i ids, unsigned lanes, std::int64_t base) {
    const __m512i one = _mm512_set1_epi64(1);
    const __m512i places = _mm512_sub_epi32(ids, _mm512_set1_epi32(static_cast<std::int32_t>(base)));
    const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(places)),
                  high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(places, 1));
    const __m512i bits =
        _mm512_or_si512(_mm512_maskz_sllv_epi64(static_cast<__mmask8>(lanes), one, low),
                        _mm512_maskz_sllv_epi64(static_cast<__mmask8>(lanes >> 8), one, high));
    return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(bits));
}

// A segmented scan: each lane's key becomes the highest so far of its segment, in steps of 1, 2, 4 and 8
// lanes. Because ids are sorted, all lanes between two lanes of equal ids belong to the same segment.
template <class Lanes>
static inline __m512i scan(__m512i keys, __m512i ids, __m512i no_id) {
    const auto join = [&](__m512i moved_ids, __m512i moved_keys) {
        keys = Lanes::highest(Lanes::equal(ids, moved_ids), keys, moved_keys);
    };
    join(Lanes::template moved_up<1>(ids, no_id), Lanes::template moved_up<1>(keys, keys));
    join(Lanes::template moved_up<2>(ids, no_id), Lanes::template moved_up<2>(keys, keys));
    join(Lanes::template moved_up<4>(ids, no_id), Lanes::template moved_up<4>(keys, keys));
    if constexpr (Lanes::kCount == 16)
        join(Lanes::template moved_up<8>(ids, no_id), Lanes::template moved_up<8>(keys, keys));
    return keys;
}

// Folds vectors of rows with sorted ids inside the output, up to the start of a long run. The last vector may
// be partial. If another thread changes ids meanwhile, the result is wrong, but each vector still writes
// exactly the output rows from the last one written to its last id.
template <class T, class Id>
struct VectorSegments {
    using Keys = KeyLanes<T>;
    using Lanes = typename Keys::Lanes;
    using Mask = typename Lanes::Mask;
    static constexpr unsigned kCount = Lanes::kCount, kAll = (1U << kCount) - 1;
    static constexpr auto kMostAtOnce = static_cast<std::int64_t>(kExpandRows);  // rows of the output

    // Not inline, because its constants and its state need all registers.
    __attribute__((noinline)) static std::size_t take(const SegmentWalk* walk, const Item<T>* items,
                                                      const Ids<Id>& ids, std::size_t i, ColumnWalk<T>* at) {
        const std::size_t start = i;
        VectorSegments vectors{walk,
                               items,
                               ids,
                               at->previous,
                               Lanes::splat(static_cast<typename Lanes::Lane>(at->previous)),
                               Keys::splat(T::bits(at->best)),
                               Keys::splat(static_cast<typename T::Bits>(walk->fill))};
        while (ids.n - i > kCount) {
            // The hardware does not prefetch two lines of ids per step (measured).
            if constexpr (kCount * sizeof(Id) > 64)
                prefetch(reinterpret_cast<const char*>(ids.ids + i) + kIdsAheadBytes, 2 * kLine);
            const unsigned taken = vectors.template step<true>(i, kCount);
            if (taken == 0) break;
            i += kCount;
            if (taken == kSingle && ids.n - i >= kCount) {
                ColumnWalk<T> here{vectors.previous, T::kLowestKey};
                const std::size_t next = single_rows<T>(walk, items, ids, i, &here);
                if (next == i) continue;
                i = next;
                vectors.previous = here.previous;
                vectors.before = Lanes::splat(static_cast<typename Lanes::Lane>(here.previous));
                vectors.carry = Keys::splat(T::bits(here.best));
            }
        }
        const std::size_t left = ids.n - i;
        if (left > 0 && left <= kCount && vectors.template step<false>(i, static_cast<unsigned>(left)) != 0)
            i += left;
        const auto* out = reinterpret_cast<const Item<T>*>(walk->out);
        if (i > start) *at = {vectors.previous, T::key(out[vectors.previous].value)};
        return i;
    }

    static constexpr unsigned kSingle = 2;  // rows were folded, each a segment, without gaps

    // Folds `count` rows from i on: a whole vector that is followed by other rows, or the last rows. Returns
    // 0 if it folds none.
    template <bool whole>
    unsigned step(std::size_t i, unsigned count) {
        const unsigned lanes = whole ? kAll : (1U << count) - 1, most = whole ? kCount : count;
        const std::int64_t first = ids[i], last = ids[i + most - 1];
        if (first < previous || first < 0 || last < first || !ids.has_row(last)) return 0;
        if (whole && ids.n - i >= kRun && ids[i + kRun - 1] == first) return 0;
        if constexpr (sizeof(Id) > sizeof(typename Lanes::Lane))
            if (last - previous > std::numeric_limits<typename Lanes::Lane>::max()) return 0;
        if (goes_down<kCount>(ids.ids + i, whole ? lanes : lanes >> 1)) return 0;
        const __m512i here = Lanes::ids(lanes, ids.ids + i);

        // The carry from the rows before is merged after the scan, not before, so that a step waits for few
        // instructions of the step before. Masks come from vectors of ids, because moves from integer to mask
        // registers are slow.
        const __m512i no_id =
            Lanes::add(Lanes::splat_from(ids.ids + i), Lanes::splat(-1));  // lower than all ids
        const Mask goes_on = Lanes::equal(here, before);
        __m512i keys = scan<Lanes>(Keys::load(lanes, items + i), here, no_id);
        keys = Lanes::highest(goes_on, keys, carry);
        carry = Lanes::splat_last(keys);
        before = Lanes::splat_last(here);

        // The lanes where a segment ends. The last lane counts: its segment is stored again if it continues.
        Mask ends = Lanes::differ(here, Lanes::moved_down_one(here, no_id));
        if (!whole) ends = static_cast<Mask>((ends & lanes) | 1U << (most - 1));
        const auto segments = static_cast<unsigned>(__builtin_popcount(ends));
        const __m512i row = Lanes::compress(ends, keys);
        const std::int64_t base = previous + (first != previous ? 1 : 0);
        previous = last;
        if (last - base == static_cast<std::int64_t>(segments) - 1) {
            Keys::store((1U << segments) - 1, out() + base, row);
            return segments == kCount ? kSingle : 1;
        }
        store_apart(walk, ids, i, here, lanes, ends, row, empty, base, last);
        return 1;
    }

    // Stores segments with empty segments between them or before the first.
    static void store_apart(const SegmentWalk* walk, const Ids<Id>& ids, std::size_t i, __m512i here,
                            unsigned lanes, unsigned ends, __m512i row, __m512i empty, std::int64_t base,
                            std::int64_t last) {
        if (last - base >= kMostAtOnce) return store_far_apart(walk, ids, i, ends, row, base, last);
        auto* out = reinterpret_cast<Item<T>*>(walk->out);
        const auto rows = static_cast<unsigned>(last - base) + 1;
        std::uint64_t left = present(Lanes{}, here, lanes, base);
        for (unsigned k = 0; k < rows; k += kCount, left >>= kCount) {
            const unsigned some = static_cast<unsigned>(left) & kAll,
                           inside = rows - k < kCount ? (1U << (rows - k)) - 1 : kAll;
            Keys::store(walk->is_filled ? some & inside : inside, out + base + k,
                        Lanes::expand(empty, static_cast<Mask>(some), row));
            row = Lanes::moved_down(row, static_cast<unsigned>(__builtin_popcount(some)));
        }
    }
    __attribute__((noinline, cold)) static void store_far_apart(const SegmentWalk* walk, const Ids<Id>& ids,
                                                                std::size_t i, unsigned ends, __m512i row,
                                                                std::int64_t next, std::int64_t last) {
        auto* out = reinterpret_cast<Item<T>*>(walk->out);
        Item<T> each[kCount];
        Keys::store(kAll, each, row);
        for (unsigned k = 0; ends != 0; ends &= ends - 1, ++k) {
            const std::int64_t id = ids[i + static_cast<unsigned>(__builtin_ctz(ends))];
            if (id < next || id > last) continue;  // changed by another thread
            if (id > next) fill<T>(walk, next, id);
            out[id] = each[k];
            next = id + 1;
        }
        if (next <= last) fill<T>(walk, next, last + 1);
    }

    Item<T>* out() const { return reinterpret_cast<Item<T>*>(walk->out); }

    const SegmentWalk* walk;
    const Item<T>* items;
    const Ids<Id>& ids;
    std::int64_t previous;
    __m512i before;        // the last row's id, in all lanes
    __m512i carry, empty;  // the highest key so far of that row's segment; the key of the fill value
};
