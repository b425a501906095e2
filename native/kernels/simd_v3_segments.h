// What AVX2 does better than the loops: short segments, a vector of rows at a time.
//
// Included by simd_v3.h.

// For every set of lanes where a segment goes on, the other lanes' numbers, to be moved to the front.
template <unsigned lanes>
struct Compression {
    static constexpr unsigned kWords = 8 / lanes;  // of 32 bits, in a lane
    alignas(32) std::uint32_t from[1U << lanes][8];

    constexpr Compression() : from() {
        for (unsigned set = 0; set < 1U << lanes; ++set)
            for (unsigned lane = 0, to = 0; lane < lanes; ++lane)
                if ((set >> lane & 1) == 0)
                    for (unsigned word = 0; word < kWords; ++word) from[set][to++] = lane * kWords + word;
    }
};
template <unsigned lanes>
constexpr Compression<lanes> kCompression;

// One half twice. (With a step within halves before it, this takes less time than any step across them.)
static inline __m256i splat_low(__m256i v) {
    return _mm256_inserti128_si256(v, _mm256_castsi256_si128(v), 1);
}
static inline __m256i splat_high(__m256i v) {
    return _mm256_permute2x128_si256(v, v, 0x11);
}

// The instructions by lane width, under one name each. Joined keys are the higher where lanes are of one
// segment; a scan joins each lane's with those before it, in steps within halves, then across. (A lane that
// has none before it within the step is joined with itself, or with another of its own segment.)
struct Lanes64 {
    using Lane = std::int64_t;
    using Place = std::int64_t;
    static constexpr unsigned kLanes = 4;
    static __m256i splat(Lane v) { return _mm256_set1_epi64x(v); }
    static __m256i join(__m256i keys, __m256i others, __m256i is_same) {
        const __m256i is_higher = _mm256_and_si256(_mm256_cmpgt_epi64(others, keys), is_same);
        return _mm256_blendv_epi8(keys, others, is_higher);
    }
    static __m256i is_same(__m256i here, const Place* places) {
        return _mm256_cmpeq_epi64(here, load_vector(places));
    }
    static __m256i sub(__m256i a, __m256i b) { return _mm256_sub_epi64(a, b); }
    static __m256i is_at(__m256i here, Place place) {
        return _mm256_cmpeq_epi64(here, _mm256_set1_epi64x(place));
    }
    static __m256i scan(__m256i keys, __m256i here, const Place* place) {
        keys = join(keys, _mm256_unpacklo_epi64(keys, keys), is_same(here, place - 1));
        return join(keys, splat_low(_mm256_unpackhi_epi64(keys, keys)), is_at(here, place[1]));
    }
    static __m256i splat_last(__m256i v) { return splat_high(_mm256_unpackhi_epi64(v, v)); }
    static unsigned mask(__m256i v) {
        return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(v)));
    }
    static std::uint64_t all_bits(__m256i v) {
        const __m128i pair = _mm_or_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        return static_cast<std::uint64_t>(_mm_extract_epi64(pair, 0) | _mm_extract_epi64(pair, 1));
    }
};
struct Lanes32 {
    using Lane = std::uint32_t;
    using Place = std::int32_t;
    static constexpr unsigned kLanes = 8;
    static __m256i splat(Lane v) { return _mm256_set1_epi32(static_cast<std::int32_t>(v)); }
    static __m256i join(__m256i keys, __m256i others, __m256i is_same) {
        return _mm256_max_epu32(keys, _mm256_and_si256(others, is_same));
    }
    static __m256i is_same(__m256i here, const Place* places) {
        return _mm256_cmpeq_epi32(here, load_vector(places));
    }
    static __m256i sub(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
    static __m256i is_at(__m256i here, Place place) {
        return _mm256_cmpeq_epi32(here, _mm256_set1_epi32(place));
    }
    static __m256i scan(__m256i keys, __m256i here, const Place* place) {
        keys = join(keys, _mm256_shuffle_epi32(keys, _MM_SHUFFLE(2, 1, 0, 0)), is_same(here, place - 1));
        keys = join(keys, _mm256_shuffle_epi32(keys, _MM_SHUFFLE(1, 0, 0, 0)), is_same(here, place - 2));
        return join(keys, splat_low(_mm256_shuffle_epi32(keys, _MM_SHUFFLE(3, 3, 3, 3))),
                    is_at(here, place[3]));
    }
    static __m256i splat_last(__m256i v) {
        return splat_high(_mm256_shuffle_epi32(v, _MM_SHUFFLE(3, 3, 3, 3)));
    }
    static unsigned mask(__m256i v) {
        return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(v)));
    }
    static std::uint64_t all_bits(__m256i v) {
        const std::uint64_t pairs = Lanes64::all_bits(v);
        return (pairs | pairs >> 32) & 0xFFFFFFFF;
    }
};

// Keys in lanes: of 64 bits, or of 32 bits for all narrower types, whose floats are moved to the top half.
// Lanes of 32 bits compare as unsigned integers, so that a mask makes the lowest of any; lanes of 64 bits as
// signed ones, since AVX2 has no other comparison.
template <class T>
struct KeyLanes {
    using Bits = typename T::Bits;
    static constexpr std::size_t kSize = sizeof(Bits);
    using Lanes = std::conditional_t<kSize == 8, Lanes64, Lanes32>;
    using Lane = typename Lanes::Lane;

    static Lane lane(Bits bits) {
        if constexpr (T::is_float)
            return moved(OrderOf<T>::Type::key(static_cast<Int>(static_cast<Int>(bits) * (Int{1} << kUp))));
        else
            return moved(static_cast<Int>(T::key(bits)));
    }
    static Bits bits(Lane lane) {
        const auto key = static_cast<Int>(static_cast<Unsigned>(lane) ^ kMove);
        if constexpr (T::is_float)
            return static_cast<Bits>(OrderOf<T>::Type::bits(key) >> kUp);
        else
            return static_cast<Bits>(key);
    }
    static __m256i load(const Item<T>* from) {
        const __m256i items = widened(from);
        if constexpr (T::is_float) return key_of_float(items);
        if constexpr (std::is_same_v<T, BoolOrder>) return _mm256_min_epu32(items, Lanes::splat(1));
        return kMove == 0 ? items : _mm256_xor_si256(items, Lanes::splat(static_cast<Lane>(kMove)));
    }

private:
    using Int = std::make_signed_t<Lane>;
    using Unsigned = std::make_unsigned_t<Lane>;
    static constexpr int kUp = T::is_float && kSize == 2 ? 16 : 0;
    static constexpr bool kIsSigned = std::is_signed_v<Bits>;
    static constexpr Unsigned kHalfRange = Unsigned{1} << (8 * sizeof(Lane) - 1);
    static constexpr Unsigned kMove = kIsSigned == std::is_signed_v<Lane> ? 0 : kHalfRange;

    // T's order at a lane's width, for floats.
    template <class Order>
    struct OrderOf {
        using Type = FloatOrder<Int, static_cast<Int>(static_cast<Int>(Order::kInfinity) << kUp)>;
    };
    static constexpr Lane moved(Int key) { return static_cast<Lane>(static_cast<Unsigned>(key) ^ kMove); }

    static __m256i widened(const Item<T>* from) {
        if constexpr (kSize >= 4) return load_vector(from);
        if constexpr (kSize == 2) {
            const __m128i items = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
            if constexpr (T::is_float) return _mm256_slli_epi32(_mm256_cvtepu16_epi32(items), kUp);
            return kIsSigned ? _mm256_cvtepi16_epi32(items) : _mm256_cvtepu16_epi32(items);
        }
        const __m128i items = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
        return kIsSigned ? _mm256_cvtepi8_epi32(items) : _mm256_cvtepu8_epi32(items);
    }
    // The magnitude's bits flipped where the sign is set, and FloatOrder's step.
    static __m256i key_of_float(__m256i b) {
        constexpr auto kStep = static_cast<Lane>(OrderOf<T>::Type::kPositiveStep ^ kMove);
        if constexpr (kSize == 8) {
            const __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), b);
            return _mm256_add_epi64(_mm256_xor_si256(b, _mm256_srli_epi64(sign, 1)), Lanes::splat(kStep));
        } else {
            const __m256i sign = _mm256_srai_epi32(b, 31);
            return _mm256_add_epi32(_mm256_xor_si256(b, _mm256_srli_epi32(sign, 1)), Lanes::splat(kStep));
        }
    }
};

// A block's scan, a vector of rows at a time.
template <class T>
struct VectorScan : KeyLanes<T> {
    using Keys = KeyLanes<T>;
    using Lanes = typename Keys::Lanes;
    using Lane = typename Lanes::Lane;
    using Place = typename Lanes::Place;
    static constexpr std::size_t kLanes = Lanes::kLanes, kRows = kBlockRows;

    template <bool gaps>
    static void scan(const Item<T>* items, const Place* place, std::size_t n, Lane carry,
                     SegmentBlock<Lane, Place>* to) {
        VectorScan scan{Lanes::splat(carry), to};
        std::size_t k = 0;
        for (; n - k >= kLanes; k += kLanes) scan.template step<gaps>(items + k, place + k);
        if (k < n) {  // the rest, and the last row again and again
            Item<T> rest[kLanes];
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                rest[lane] = items[k + lane < n ? k + lane : n - 1];
            scan.template step<gaps>(rest, place + k);
        }
        to->count = scan.end;
        to->steps = Lanes::all_bits(scan.steps);
    }

private:
    VectorScan(__m256i first, SegmentBlock<Lane, Place>* block)
        : carry(first), steps(_mm256_setzero_si256()), to(block) {}

    template <bool gaps>
    void step(const Item<T>* items, const Place* place) {
        const __m256i here = load_vector(place);
        steps = _mm256_or_si256(steps, Lanes::sub(here, load_vector(place - 1)));
        // What goes on from the rows before comes in after the scan, not before: a turn then waits for few
        // instructions of the last turn.
        __m256i keys = Lanes::scan(Keys::load(items), here, place);
        keys = Lanes::join(keys, carry, Lanes::is_at(here, place[-1]));
        carry = Lanes::splat_last(keys);

        // The lanes where a segment ends come first, and are stored with what follows them: the next vector's
        // go on top of that.
        const unsigned goes_on = Lanes::mask(Lanes::is_same(here, place + 1));
        const __m256i ends = load_vector(kCompression<kLanes>.from[goes_on]);
        store_vector(to->best + end, _mm256_permutevar8x32_epi32(keys, ends));
        if constexpr (gaps) store_vector(to->place + end, _mm256_permutevar8x32_epi32(here, ends));
        end += kLanes - static_cast<unsigned>(__builtin_popcount(goes_on));
    }

    __m256i carry;  // the last row's key, in all lanes
    __m256i steps;
    std::size_t end = 0;
    SegmentBlock<Lane, Place>* to;
};

template <class T, class Id>
struct VectorSegments : BlockSegments<T, Id, VectorScan<T>> {};
