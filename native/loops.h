// The loops, as templates over a type's order. Each does one thing to contiguous data.
//
// Included by kernels.cpp alone, inside a namespace of the instruction set that it is compiled
// for, so that no two compilations of one template can be taken for each other by the linker.
// For the same reason nothing here calls a function of the standard library.

// NumPy's data may lie at any address, and its types alias whatever the caller has there. (A struct,
// because a typedef's attributes are lost when it becomes a template's argument.)
template <class Int>
struct __attribute__((packed, may_alias)) Loose {
    Int value;
};

template <class T>
using Item = Loose<typename T::Bits>;

template <std::size_t itemsize>
struct WordOf;
template <>
struct WordOf<1> {
    using type = std::uint8_t;
};
template <>
struct WordOf<2> {
    using type = std::uint16_t;
};
template <>
struct WordOf<4> {
    using type = std::uint32_t;
};
template <>
struct WordOf<8> {
    using type = std::uint64_t;
};
template <class T>
using Word = typename WordOf<sizeof(typename T::Bits)>::type;

template <class Key>
static inline Key highest(Key a) {
    return a;
}
template <class Key>
static inline Key highest(Key a, Key b) {
    return a < b ? b : a;
}
template <class Key, class... Keys>
static inline Key highest(Key a, Key b, Keys... others) {
    return highest(highest(a, b), others...);
}

// How many of the first items lie before the next cache line, where whole vectors had better begin; 0 if
// there are too few items to gain anything, or if no item begins a line.
template <class T>
static inline std::size_t items_before_line(const void* data, std::size_t n) {
    constexpr std::size_t kLine = 64, kWorthwhile = 2048;
    std::size_t past = reinterpret_cast<std::uintptr_t>(data) % kLine;
    if (past == 0 || past % sizeof(Item<T>) != 0 || n * sizeof(Item<T>) < kWorthwhile) return 0;
    return (kLine - past) / sizeof(Item<T>);
}

// ---------------------------------------------------------------------------- fold

// The inputs are separate parameters because an array of pointers keeps compilers from vectorising.
// The output may be one of the inputs: each element is read before it is written.
#if defined(__clang__)
#define MAXOPS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MAXOPS_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <class T, class... Input>
static void fold_inputs(Item<T>* out, std::size_t n, const Input*... in) {
    MAXOPS_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) out[i].value = T::bits(highest(T::key(in[i].value)...));
}

// Two floats need no keys: among two negative numbers the lower integer is the higher number,
// otherwise the higher integer is; an unsigned maximum past -Inf or a signed one past +Inf is a NaN.
template <class T>
static void fold_pair(Item<T>* out, std::size_t n, const Item<T>* a, const Item<T>* b) {
    using Bits = typename T::Bits;
    using U = typename T::U;
    MAXOPS_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) {
        Bits x = a[i].value, y = b[i].value;
        Bits high = x < y ? y : x, low = x < y ? x : y;
        U top = static_cast<U>(x) < static_cast<U>(y) ? static_cast<U>(y) : static_cast<U>(x);
        Bits number = high < 0 ? low : high;
        bool nan = (top > T::kMinusInfinity) | (high > static_cast<Bits>(T::kInfinity));
        out[i].value = nan ? T::kNaN : number;
    }
}

template <class T, int... I>
static void fold(void* out, const void* const* in, std::size_t n) {
    constexpr auto loop = [](Item<T>* to, std::size_t count, auto... from) {
        if constexpr (T::is_float && sizeof...(I) == 2)
            fold_pair<T>(to, count, from...);
        else
            fold_inputs<T>(to, count, from...);
    };
    auto* to = static_cast<Item<T>*>(out);
    std::size_t head = items_before_line<T>(out, n);
    if (head > 0) loop(to, head, static_cast<const Item<T>*>(in[I])...);
    loop(to + head, n - head, (static_cast<const Item<T>*>(in[I]) + head)...);
}

// What an instruction set's own header may replace, type by type.
template <class T>
constexpr auto kFoldTwo = fold<T, 0, 1>;

// ---------------------------------------------------------------------------- copies

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

// ---------------------------------------------------------------------------- reduce

template <class T>
static inline typename T::Key highest_key(const Item<T>* __restrict data, std::size_t n) {
    typename T::Key best = T::kLowestKey;
    for (std::size_t i = 0; i < n; ++i) best = highest(best, T::key(data[i].value));
    return best;
}

// The highest key of a block. For floats it takes fewer steps an element than highest_key: two integer
// maxima tell all, unless the block holds negative numbers only.
template <class T>
static inline typename T::Key highest_key_of_block(const Item<T>* __restrict data, std::size_t n) {
    if constexpr (T::is_float) {
        using Bits = typename T::Bits;
        using U = typename T::U;
        Bits high = T::kLowestFinite;
        U top = 0;
        for (std::size_t i = 0; i < n; ++i) {
            Bits x = data[i].value;
            high = high < x ? x : high;
            top = top < static_cast<U>(x) ? static_cast<U>(x) : top;
        }
        if (top > T::kMinusInfinity) return T::kNaNKey;
        if (high >= 0) return T::key(high);
    }
    return highest_key<T>(data, n);
}

// Block by block, up to the first that holds the highest key of all: a NaN, or True.
template <class T>
static typename T::Key highest_key_in_blocks(const Item<T>* data, std::size_t n) {
    constexpr std::size_t kBlock = 8192 / sizeof(Item<T>);
    typename T::Key best = T::kLowestKey;
    while (n > 0 && best < T::kHighestKey) {
        std::size_t m = n < kBlock ? n : kBlock;
        best = highest(best, highest_key_of_block<T>(data, m));
        data += m;
        n -= m;
    }
    return best;
}

template <class T>
static inline typename T::Key highest_of(const Item<T>* data, std::size_t n) {
    if (n < 64) return highest_key<T>(data, n);
    std::size_t head = items_before_line<T>(data, n);
    typename T::Key first = head > 0 ? highest_key<T>(data, head) : T::kLowestKey;
    return highest(first, highest_key_in_blocks<T>(data + head, n - head));
}

template <class Target>
static inline const Target* at(const void* data, std::ptrdiff_t bytes) {
    return reinterpret_cast<const Target*>(static_cast<const char*>(data) + bytes);
}

template <class T>
static void start(void* keys, std::size_t n) {
    auto* acc = static_cast<typename T::Key*>(keys);
    for (std::size_t j = 0; j < n; ++j) acc[j] = T::kLowestKey;
}

// Short rows that follow one another, their length known to the compiler.
template <class T, std::size_t n>
static void short_rows(typename T::Key* __restrict acc, const Item<T>* __restrict data, std::size_t rows) {
    for (std::size_t r = 0; r < rows; ++r) {
        typename T::Key best = acc[r];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < n; ++i) best = highest(best, T::key(data[r * n + i].value));
        acc[r] = best;
    }
}

template <class T>
static void columns(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
    auto* __restrict acc = static_cast<typename T::Key*>(keys);
    // Four rows a turn: each key is loaded and stored once for four elements.
    for (; rows >= 4; rows -= 4) {
        const Item<T>* __restrict a = at<Item<T>>(data, 0);
        const Item<T>* __restrict b = at<Item<T>>(data, stride);
        const Item<T>* __restrict c = at<Item<T>>(data, 2 * stride);
        const Item<T>* __restrict d = at<Item<T>>(data, 3 * stride);
        for (std::size_t j = 0; j < n; ++j)
            acc[j] = highest(acc[j], highest(T::key(a[j].value), T::key(b[j].value)),
                             highest(T::key(c[j].value), T::key(d[j].value)));
        data = at<char>(data, 4 * stride);
    }
    for (; rows > 0; --rows) {
        const Item<T>* __restrict a = at<Item<T>>(data, 0);
        for (std::size_t j = 0; j < n; ++j) acc[j] = highest(acc[j], T::key(a[j].value));
        data = at<char>(data, stride);
    }
}

// Up to where turning rows beats a vector each: by measurement.
template <class T>
constexpr std::size_t kShortRow = sizeof(typename T::Bits) <= 2 ? 31 : 16;

// Short rows of any length: as columns, once turned in cache.
template <class T>
static void turned_rows(typename T::Key* acc, const void* data, std::ptrdiff_t stride, std::size_t rows,
                        std::size_t n) {
    constexpr std::size_t kTile = 64;
    alignas(64) Word<T> turned[kShortRow<T> * kTile];
    for (std::size_t r = 0; r < rows; r += kTile) {
        const std::size_t m = rows - r < kTile ? rows - r : kTile;
        turn<Word<T>>(turned, at<char>(data, static_cast<std::ptrdiff_t>(r) * stride), stride, n, m);
        columns<T>(acc + r, turned, static_cast<std::ptrdiff_t>(m * sizeof(Item<T>)), n, m);
    }
}

template <class T>
static void rows(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
    auto* acc = static_cast<typename T::Key*>(keys);
    if (rows > 1 && stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>))) {
        auto* items = static_cast<const Item<T>*>(data);
        if (n == 2) return short_rows<T, 2>(acc, items, rows);
        if (n == 3) return short_rows<T, 3>(acc, items, rows);
        if (n == 4) return short_rows<T, 4>(acc, items, rows);
        if (n == 8) return short_rows<T, 8>(acc, items, rows);
    }
    if (rows >= 16 && n > 1 && n <= kShortRow<T>) return turned_rows<T>(acc, data, stride, rows, n);
    for (std::size_t r = 0; r < rows; ++r)
        acc[r] =
            highest(acc[r], highest_of<T>(at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride), n));
}

template <class T>
static void merge(void* keys, std::size_t groups, std::size_t n) {
    auto* acc = static_cast<typename T::Key*>(keys);
    for (std::size_t g = 1; g < groups; ++g)
        for (std::size_t j = 0; j < n; ++j) acc[j] = highest(acc[j], acc[g * n + j]);
}

template <class T>
static void finish(void* out, const void* keys, std::size_t n) {
    auto* __restrict items = static_cast<Item<T>*>(out);
    auto* __restrict acc = static_cast<const typename T::Key*>(keys);
    for (std::size_t j = 0; j < n; ++j) items[j].value = T::bits(acc[j]);
}

// ---------------------------------------------------------------------------- segment

template <class T>
static void fill(const SegmentWalk* walk, std::int64_t from, std::int64_t to) {
    if (from >= to || walk->is_filled) return;
    char* row = walk->out + from * walk->out_stride;
    auto value = static_cast<typename T::Bits>(walk->fill);
    std::size_t rows = static_cast<std::size_t>(to - from), n = walk->width;
    if (walk->out_stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>))) {
        n *= rows;
        rows = 1;
    }
    for (; rows > 0; --rows, row += walk->out_stride)
        for (std::size_t j = 0; j < n; ++j) reinterpret_cast<Item<T>*>(row)[j].value = value;
}

// A segment's rows, maximised column by column into `target`, over what is there if `merge`.
template <class T>
static void segment_rows(char* target, bool merge, const char* data, std::ptrdiff_t stride, std::size_t rows,
                         std::size_t width) {
    constexpr std::size_t kBlock = 8192 / sizeof(Item<T>);
    alignas(64) typename T::Key keys[kBlock];
    for (std::size_t j = 0; j < width; j += kBlock) {
        std::size_t n = width - j < kBlock ? width - j : kBlock;
        auto* out = reinterpret_cast<Item<T>*>(target) + j;
        auto* first = at<Item<T>>(data, 0) + j;
        if (merge)
            for (std::size_t i = 0; i < n; ++i)
                keys[i] = highest(T::key(out[i].value), T::key(first[i].value));
        else
            for (std::size_t i = 0; i < n; ++i) keys[i] = T::key(first[i].value);
        columns<T>(keys, at<Item<T>>(data, stride) + j, stride, rows - 1, n);
        finish<T>(out, keys, n);
    }
}

// A block's ids. They are trusted for the result and never for the memory: one outside [0, num_segments) is
// moved to -1 or num_segments, which have no row. Whatever the ids, every row of the output up to the last
// id is written, since a step upwards fills what it skips.
template <class Id>
struct Ids {
    const Loose<Id>* ids;
    std::size_t n;
    std::int64_t num_segments;
    bool gallops;

    // Read once, by a volatile access: another thread may change the ids meanwhile, and what was checked must
    // be what is used.
    std::int64_t operator[](std::size_t i) const {
        return static_cast<const volatile Loose<Id>*>(ids + i)->value;
    }
    bool has_row(std::int64_t id) const {
        return static_cast<std::uint64_t>(id) < static_cast<std::uint64_t>(num_segments);
    }
    std::int64_t clamped(std::int64_t id) const {
        return id < 0 ? -1 : id < num_segments ? id : num_segments;
    }
    // Where the run of ids equal to ids[i] ends.
    std::size_t run_end(std::size_t i) const {
        constexpr std::size_t kBlock = 64;
        const Id id = ids[i].value;
        if (gallops) {
            // In sorted ids, where the last of a stretch is equal all of it is: double the stretch while
            // that holds, then halve it.
            std::size_t stretch = kBlock;
            for (++i; n - i >= stretch && ids[i + stretch - 1].value == id; stretch *= 2) i += stretch;
            for (; stretch >= kBlock; stretch /= 2)
                if (n - i >= stretch && ids[i + stretch - 1].value == id) i += stretch;
            while (i < n && ids[i].value == id) ++i;
            return i;
        }
        for (++i; n - i >= kBlock; i += kBlock) {
            Id differ = 0;  // in the ids' own width, which compilers turn into vectors
            for (std::size_t k = 0; k < kBlock; ++k) differ |= ids[i + k].value ^ id;
            if (differ != 0) break;
        }
        while (i < n && ids[i].value == id) ++i;
        return i;
    }
};

// Where a walk down one column stands: the last row's segment, and its highest key so far.
template <class T>
struct ColumnWalk {
    std::int64_t previous;
    typename T::Key best;
};

// Rows of short segments, up to `stop`, or to the first that lies outside the output. The output is stored
// at every row, since a branch on "is the segment over?" costs more than the store.
template <class T, class Id>
static std::size_t short_segments(const SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids,
                                  std::size_t i, std::size_t stop, ColumnWalk<T>* at) {
    auto* out = reinterpret_cast<Item<T>*>(walk->out);
    auto [previous, best] = *at;
    for (; i < stop; ++i) {
        const std::int64_t id = ids[i];
        if (!ids.has_row(id)) break;
        if (id > previous + 1) fill<T>(walk, previous + 1, id);
        typename T::Key before = id == previous ? best : T::kLowestKey;
        best = highest(before, T::key(items[i].value));
        out[id].value = T::bits(best);
        previous = id;
    }
    *at = {previous, best};
    return i;
}

// As short_segments, for as many rows from i on as an instruction set's own header can and cares to take.
#ifndef MAXOPS_SIMD
template <class T, class Id>
struct VectorSegments {
    static std::size_t take(const SegmentWalk*, const Item<T>*, const Ids<Id>&, std::size_t i,
                            ColumnWalk<T>*) {
        return i;
    }
};
#else
template <class T, class Id>
struct VectorSegments;
#endif

// One column: no call a segment.
template <class T, class Id>
static void segment_column(SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids, std::size_t i) {
    constexpr std::size_t kRun = 64, kShort = 32;
    ColumnWalk<T> at{walk->previous, T::kLowestKey};
    while (i < ids.n) {
        const std::int64_t id = ids[i];
        if (!ids.has_row(id)) {
            fill<T>(walk, at.previous + 1, ids.clamped(id));
            at.previous = ids.clamped(id);
            ++i;
        } else if (ids.n - i >= kRun && ids[i + kRun - 1] == id) {
            fill<T>(walk, at.previous + 1, id);
            const std::size_t end = ids.run_end(i);
            const auto run = highest_of<T>(items + i, end - i);
            at = {id, id == at.previous ? highest(at.best, run) : run};
            reinterpret_cast<Item<T>*>(walk->out)[id].value = T::bits(at.best);
            i = end;
        } else {
            const std::size_t next = VectorSegments<T, Id>::take(walk, items, ids, i, &at);
            const std::size_t stop = ids.n - i < kShort ? ids.n : i + kShort;
            i = next > i ? next : short_segments<T>(walk, items, ids, i, stop, &at);
        }
    }
    if (at.previous == walk->previous) return;
    walk->previous = at.previous;
    walk->target = ids.has_row(at.previous) ? walk->out + at.previous * walk->out_stride : nullptr;
}

template <class T, class Id>
static void segment(SegmentWalk* walk, const void* data_, std::ptrdiff_t stride, const void* ids_,
                    std::size_t n) {
    const char* data = static_cast<const char*>(data_);
    const Ids<Id> ids{static_cast<const Loose<Id>*>(ids_), n, walk->num_segments, walk->gallops};
    const std::size_t width = walk->width;
    constexpr std::ptrdiff_t kItem = sizeof(Item<T>);
    const bool is_column = width == 1 && stride == kItem && walk->out_stride == kItem;
    std::size_t i = 0;
    if (n > 0 && ids.clamped(ids[0]) == walk->previous) {  // goes on with the segment of the last block
        i = ids.run_end(0);
        auto* target = reinterpret_cast<Item<T>*>(walk->target);
        if (target != nullptr && is_column)
            target->value = T::bits(highest(T::key(target->value), highest_of<T>(at<Item<T>>(data, 0), i)));
        else if (target != nullptr)
            segment_rows<T>(walk->target, true, data, stride, i, width);
    }
    if (is_column) return segment_column<T>(walk, at<Item<T>>(data, 0), ids, i);
    while (i < n) {
        const std::int64_t id = ids.clamped(ids[i]);
        const std::size_t end = ids.run_end(i);
        fill<T>(walk, walk->previous + 1, id);
        walk->previous = id;
        walk->target = ids.has_row(id) ? walk->out + id * walk->out_stride : nullptr;
        if (walk->target != nullptr)
            segment_rows<T>(walk->target, false, data + static_cast<std::ptrdiff_t>(i) * stride, stride,
                            end - i, width);
        i = end;
    }
}

template <class Id>
static bool sorted(const void* ids_, std::size_t n) {
    auto* __restrict ids = static_cast<const Loose<Id>*>(ids_);
    if (n == 0) return true;
    if (ids[0].value < 0) return false;
    constexpr std::size_t kBlock = 4096;
    for (std::size_t b = 1; b < n; b += kBlock) {
        std::size_t e = n - b < kBlock ? n : b + kBlock;
        Id down = 0;  // in the ids' own width, which compilers turn into vectors
        for (std::size_t i = b; i < e; ++i) down |= static_cast<Id>(ids[i].value < ids[i - 1].value ? 1 : 0);
        if (down != 0) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------- gather and scatter

template <class W, bool swap>
static void gather_items(void* block, const void* data, std::ptrdiff_t stride, std::size_t n) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    if (stride == kItem) return copy_items<W, swap>(to, kItem, from, kItem, n);
    if (stride == 0) return copy_items<W, swap>(to, kItem, from, 0, n);
    if (stride == -kItem) return copy_items<W, swap>(to, kItem, from, -kItem, n);
    if (stride == 2 * kItem) return copy_items<W, swap>(to, kItem, from, 2 * kItem, n);
    copy_items<W, swap>(to, kItem, from, stride, n);
}

template <class W>
static void gather(void* block, const void* data, std::ptrdiff_t stride, std::size_t n, bool swapped) {
    if (swapped)
        gather_items<W, true>(block, data, stride, n);
    else
        gather_items<W, false>(block, data, stride, n);
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
