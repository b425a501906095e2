// Between any layout and contiguous native blocks. Included by loops.h, where it may be read what that means.

static inline std::uint8_t swapped_bytes(std::uint8_t x) {
    return x;
}
static inline std::uint16_t swapped_bytes(std::uint16_t x) {
    return __builtin_bswap16(x);
}
static inline std::uint32_t swapped_bytes(std::uint32_t x) {
    return __builtin_bswap32(x);
}
static inline std::uint64_t swapped_bytes(std::uint64_t x) {
    return __builtin_bswap64(x);
}

// Processors fetch ahead by themselves where loads follow one another closely. Where much is done with each
// line, they had better be told.
static inline void call_for(const void* data, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    for (std::size_t line = 0; line < bytes; line += kLine)
        __builtin_prefetch(static_cast<const char*>(data) + line);
}

// A constant stride of one item lets the compiler copy vectors, a stride of none hoists the load.
template <class W, bool swap>
static inline void copy_items(char* to, std::ptrdiff_t to_stride, const char* from,
                              std::ptrdiff_t from_stride, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, to += to_stride, from += from_stride) {
        W word = reinterpret_cast<const Loose<W>*>(from)->value;
        reinterpret_cast<Loose<W>*>(to)->value = swap ? swapped_bytes(word) : word;
    }
}

// Square blocks of as many words as 16 bytes hold are turned by zipping rows: after as many rounds as the
// width has bits, row and column have changed places.
template <class W>
struct Turn {
    typedef W Row __attribute__((vector_size(16)));
    static constexpr int kWidth = 16 / sizeof(W);

    template <int first, int... lane>
    static Row zip(Row a, Row b, std::integer_sequence<int, lane...>) {
        return __builtin_shufflevector(a, b, (lane % 2 * kWidth + first + lane / 2)...);
    }
    static void block(char* to, std::ptrdiff_t to_stride, const char* from, std::ptrdiff_t from_stride) {
        constexpr auto kLanes = std::make_integer_sequence<int, kWidth>{};
        Row rows[kWidth], zipped[kWidth];
        for (int r = 0; r < kWidth; ++r) __builtin_memcpy(&rows[r], from + r * from_stride, sizeof(Row));
        for (int round = 1; round < kWidth; round *= 2) {
            for (int r = 0; r < kWidth / 2; ++r) {
                zipped[2 * r] = zip<0>(rows[r], rows[r + kWidth / 2], kLanes);
                zipped[2 * r + 1] = zip<kWidth / 2>(rows[r], rows[r + kWidth / 2], kLanes);
            }
            for (int r = 0; r < kWidth; ++r) rows[r] = zipped[r];
        }
        for (int r = 0; r < kWidth; ++r) __builtin_memcpy(to + r * to_stride, &rows[r], sizeof(Row));
    }
};

template <class W>
static void turn(void* block, const void* data, std::ptrdiff_t stride, std::size_t rows,
                 std::size_t columns) {
    constexpr std::size_t kWidth = Turn<W>::kWidth;
    constexpr std::ptrdiff_t kItem = sizeof(W);
    const auto line = static_cast<std::ptrdiff_t>(columns) * kItem;
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    for (std::size_t c = 0; c < columns;) {
        const std::size_t across = columns - c < kWidth ? 1 : kWidth;
        std::size_t r = 0;
        if (across == kWidth)
            for (; rows - r >= kWidth; r += kWidth)
                Turn<W>::block(to + static_cast<std::ptrdiff_t>(r) * line, line,
                               from + static_cast<std::ptrdiff_t>(r) * kItem, stride);
        for (std::size_t k = 0; k < across; ++k)
            copy_items<W, false>(
                to + static_cast<std::ptrdiff_t>(r) * line + static_cast<std::ptrdiff_t>(k) * kItem, line,
                from + static_cast<std::ptrdiff_t>(k) * stride + static_cast<std::ptrdiff_t>(r) * kItem,
                kItem, rows - r);
        c += across;
        to += static_cast<std::ptrdiff_t>(across) * kItem;
        from += static_cast<std::ptrdiff_t>(across) * stride;
    }
}

// The first of each pair of words, for almost n of them: beyond the last there may be nothing to read. (Other
// widths are done well by the compiler; and all of them with AVX-512, which picks words from two vectors.)
#if defined(__AVX512F__)
constexpr bool kPicksWords = true;
#else
constexpr bool kPicksWords = false;
#endif
static inline std::size_t every_second(char* to, const char* from, std::size_t n) {
    typedef std::uint32_t Row __attribute__((vector_size(16)));
    constexpr std::size_t kWidth = 4, kItem = 4;
    std::size_t i = 0;
    for (; n - i > kWidth; i += kWidth) {
        Row first, second;
        __builtin_memcpy(&first, from + 2 * i * kItem, sizeof(Row));
        __builtin_memcpy(&second, from + (2 * i + kWidth) * kItem, sizeof(Row));
        const Row even = __builtin_shufflevector(first, second, 0, 2, 4, 6);
        __builtin_memcpy(to + i * kItem, &even, sizeof(Row));
    }
    return i;
}

template <class W, bool swap>
static void gather_items(void* block, const void* data, std::ptrdiff_t stride, std::size_t n) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    if (stride == kItem) return copy_items<W, swap>(to, kItem, from, kItem, n);
    if (stride == 0) return copy_items<W, swap>(to, kItem, from, 0, n);
    if (stride == -kItem) return copy_items<W, swap>(to, kItem, from, -kItem, n);
    if (stride == 2 * kItem) {
        auto* __restrict items = reinterpret_cast<Loose<W>*>(to);
        auto* __restrict pairs = reinterpret_cast<const Loose<W>*>(from);
        std::size_t i = 0;
        if constexpr (!swap && sizeof(W) == 4 && !kPicksWords) i = every_second(to, from, n);
        for (; i < n; ++i) items[i].value = swap ? swapped_bytes(pairs[2 * i].value) : pairs[2 * i].value;
        return;
    }
    copy_items<W, swap>(to, kItem, from, stride, n);
}

template <class W>
static void gather(void* block, const void* data, std::ptrdiff_t stride, std::size_t n, bool swapped) {
    // Items that share lines, but are not side by side: called for a turn ahead.
    const bool calls = stride > static_cast<std::ptrdiff_t>(sizeof(W)) && stride <= 64 && n > kGatherChunk;
    const std::size_t turn = calls ? kGatherChunk : n;
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    for (std::size_t i = 0; i < n; i += turn) {
        const std::size_t m = n - i < turn ? n - i : turn;
        const auto span = static_cast<std::ptrdiff_t>(turn) * stride;
        if (calls) call_for(from + span, static_cast<std::size_t>(span));
        if (swapped)
            gather_items<W, true>(to, from, stride, m);
        else
            gather_items<W, false>(to, from, stride, m);
        to += m * sizeof(W);
        from += span;
    }
}

// Rows too short for a call each: one of them repeated, single elements repeated, or any.
template <class W, bool swap>
static void gather_short_rows(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                              std::size_t rows, std::size_t n) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    const auto row_bytes = static_cast<std::ptrdiff_t>(n) * kItem;
    if (stride == kItem) {
        for (; rows > 0; --rows, to += row_bytes, from += row_stride)
            copy_items<W, swap>(to, kItem, from, kItem, n);
    } else if (stride == 0) {
        for (; rows > 0; --rows, to += row_bytes, from += row_stride)
            copy_items<W, swap>(to, kItem, from, 0, n);
    } else {
        for (; rows > 0; --rows, to += row_bytes, from += row_stride)
            copy_items<W, swap>(to, kItem, from, stride, n);
    }
}

template <class W>
static void gather_rows(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                        std::size_t rows, std::size_t n, bool swapped) {
    if (rows == 1) return gather<W>(block, data, stride, n, swapped);
    if (swapped)
        gather_short_rows<W, true>(block, data, row_stride, stride, rows, n);
    else
        gather_short_rows<W, false>(block, data, row_stride, stride, rows, n);
}

template <class W>
static void scatter(void* data, const void* block, std::ptrdiff_t stride, std::size_t n, bool swapped) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(data);
    auto* from = static_cast<const char*>(block);
    if (swapped)
        copy_items<W, true>(to, stride, from, kItem, n);
    else
        copy_items<W, false>(to, stride, from, kItem, n);
}

// Whole lines go past the cache, by the widest stores there are; what lies before and after them does not.
static void stream(void* to_, const void* block, std::size_t bytes) {
    auto* to = static_cast<char*>(to_);
    auto* from = static_cast<const char*>(block);
#if defined(__x86_64__)
    constexpr std::size_t kLine = 64;
    std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
    head = head < bytes ? head : bytes;
    __builtin_memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= kLine;
         to += kLine, from += kLine, bytes -= kLine) {
#if defined(__AVX512F__)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
        for (std::size_t k = 0; k < kLine; k += sizeof(__m256i))
            _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
#else
        for (std::size_t k = 0; k < kLine; k += sizeof(__m128i))
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
#endif
    }
#endif
    __builtin_memcpy(to, from, bytes);
}
