// Checks that copies between any layout and blocks (kernels/copy.h, transpose.h) move each element to the correct
// position. Elements differ in each of their bytes. All sizes up to a few vectors are tried, with different strides,
// byte orders and offsets in a cache line. Also checks the indices that argmax returns. The argmax kernels only compare
// elements with the result, and no other operation on the element type compiles. Trying all combinations of equal and
// different elements therefore covers all inputs.
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "../../native/kernels/argmax.h"
#include "../../native/kernels/copy.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

unsigned long long states = 0, wrong = 0;
void expect(bool is_valid, const char* kernel, const std::vector<std::ptrdiff_t>& of) {
    states += 1;
    if (is_valid || wrong++ > 20) return;
    std::fprintf(stderr, "%s:", kernel);
    for (const std::ptrdiff_t number : of) std::fprintf(stderr, " %td", number);
    std::fprintf(stderr, "\n");
}

// A buffer of an exact size, at a given offset in a cache line. Accesses before and after it are errors.
class Buffer {
public:
    Buffer(std::size_t bytes, std::size_t offset) : memory_(3 * kLine + offset + bytes), bytes_(bytes) {
        const auto past = reinterpret_cast<std::uintptr_t>(memory_.data()) % kLine;
        data_ = memory_.data() + kLine + (kLine - past) + offset;
        std::memset(memory_.data(), kCanary, memory_.size());
        ASAN_POISON_MEMORY_REGION(memory_.data(), static_cast<std::size_t>(data_ - memory_.data()));
        ASAN_POISON_MEMORY_REGION(data_ + bytes, static_cast<std::size_t>(memory_.data() + memory_.size() - data_) - bytes);
    }
    ~Buffer() { ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size()); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    char* data() const { return data_; }
    // Whether the memory around the buffer is unchanged. AddressSanitizer does not check streaming stores.
    bool is_whole() {
        ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size());
        for (char* at = memory_.data(); at < memory_.data() + memory_.size(); ++at)
            if ((at < data_ || at >= data_ + bytes_) && *at != kCanary) return false;
        return true;
    }

private:
    static constexpr char kCanary = 0x5A;
    std::vector<char> memory_;
    std::size_t bytes_;
    char* data_;
};

// Returns the value of element i in a round. In rounds 0 and 1 together, any two of 2^16 elements differ in every byte.
// For elements of one byte, this is true for 2^8 elements.
template <class W>
W token(std::size_t i, int round) {
    std::uint64_t word = 0;
    for (std::size_t byte = 0; byte < sizeof(W); ++byte) {
        const std::size_t part = round == 0 ? i : i / 256 + 101;
        word |= static_cast<std::uint64_t>((part * (2 * byte + 1) + 57 * byte) & 0xFF) << 8 * byte;
    }
    return static_cast<W>(word);
}
template <class W>
W read(const char* from) {
    W word;
    std::memcpy(&word, from, sizeof word);
    return word;
}
template <class W>
W maybe_swapped(W word, bool swap) {
    if (!swap) return word;
    char bytes[sizeof(W)];
    std::memcpy(bytes, &word, sizeof word);
    std::reverse(bytes, bytes + sizeof word);
    return read<W>(bytes);
}

// An array of shape (rows, n) with any strides, filled with tokens. With negative strides, the first element is the
// last in memory.
template <class W>
struct Strided {
    std::ptrdiff_t row_stride, stride;
    std::size_t rows, n;
    Buffer memory;
    char* first;

    Strided(std::size_t rows_, std::size_t n_, std::ptrdiff_t row_stride_, std::ptrdiff_t stride_, std::size_t offset)
        : row_stride(row_stride_), stride(stride_), rows(rows_), n(n_), memory(bytes(), offset), first(memory.data() + before()) {}
    char* at(std::size_t r, std::size_t i) const {
        return first + static_cast<std::ptrdiff_t>(r) * row_stride + static_cast<std::ptrdiff_t>(i) * stride;
    }
    void show(int round) {
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t i = 0; i < n; ++i) {
                const W word = token<W>(r * n + i, round);
                std::memcpy(at(r, i), &word, sizeof word);
            }
    }

private:
    static std::ptrdiff_t span(std::size_t count, std::ptrdiff_t by) {
        return count == 0 ? 0 : static_cast<std::ptrdiff_t>(count - 1) * by;
    }
    std::size_t before() const {
        return static_cast<std::size_t>(-std::min<std::ptrdiff_t>(span(n, stride), 0) - std::min<std::ptrdiff_t>(span(rows, row_stride), 0));
    }
    std::size_t bytes() const {
        if (rows == 0 || n == 0) return 0;
        return static_cast<std::size_t>(std::abs(span(n, stride)) + std::abs(span(rows, row_stride))) + sizeof(W);
    }
};

// ---------------------------------------------------------------------------- copies

template <class W>
void copies() {
    constexpr auto kItem = static_cast<std::ptrdiff_t>(sizeof(W));
    const std::vector<std::ptrdiff_t> strides{kItem, 0, -kItem, 2 * kItem, -2 * kItem, 3 * kItem, 64, 64 + kItem, 2 * kItem + 1, kItem + 1};
    const std::size_t longest = 3 * 64 / sizeof(W) + 3;
    for (int round = 0; round < 2; ++round)
        for (std::size_t n = 0; n <= longest; n += n < 40 ? 1 : 7)
            for (const std::ptrdiff_t stride : strides)
                for (const bool swap : {false, true})
                    for (const std::size_t offset : {0U, 1U, 63U}) {
                        if (offset == 63 && n > 40) continue;
                        Strided<W> data(1, n, 0, stride, offset);
                        data.show(round);
                        Buffer block(n * sizeof(W), (offset * 3) % kLine);
                        gather<W>(block.data(), data.first, stride, n, swap);
                        bool is_valid = true;
                        for (std::size_t i = 0; i < n; ++i)
                            is_valid = is_valid && read<W>(block.data() + i * sizeof(W)) == maybe_swapped(read<W>(data.at(0, i)), swap);
                        expect(is_valid, "gather", {kItem, static_cast<std::ptrdiff_t>(n), stride, swap});

                        if (std::abs(stride) < kItem) continue;  // scatter does not support overlapping elements
                        Strided<W> to(1, n, 0, stride, offset);
                        const std::vector<char> was(to.memory.data(), to.memory.data() + (n == 0 ? 0 : (n - 1) * static_cast<std::size_t>(std::abs(stride)) + sizeof(W)));
                        Strided<W> from(1, n, 0, kItem, (offset * 3) % kLine);
                        from.show(round);
                        scatter<W>(to.first, from.first, stride, n, swap);
                        std::vector<char> expected = was;  // the bytes between the elements must not change
                        for (std::size_t i = 0; i < n; ++i) {
                            const W word = maybe_swapped(token<W>(i, round), swap);
                            std::memcpy(expected.data() + (to.at(0, i) - to.memory.data()), &word, sizeof word);
                        }
                        expect(std::memcmp(expected.data(), to.memory.data(), expected.size()) == 0, "scatter",
                               {kItem, static_cast<std::ptrdiff_t>(n), stride, swap});
                    }
    for (std::size_t rows = 1; rows <= 4; ++rows)
        for (std::size_t n = 0; n <= 20; ++n)
            for (const std::ptrdiff_t stride : {kItem, std::ptrdiff_t{0}, -kItem, 2 * kItem, 3 * kItem + 1})
                for (const std::ptrdiff_t row_stride : {std::ptrdiff_t{0}, kItem, -kItem * 21, kItem * 61 + 3})
                    for (const bool swap : {false, true}) {
                        Strided<W> data(rows, n, row_stride, stride, 1);
                        data.show(0);
                        Buffer block(rows * n * sizeof(W), 3);
                        gather_rows<W>(block.data(), data.first, row_stride, stride, rows, n, swap);
                        bool is_valid = true;
                        for (std::size_t k = 0; k < rows * n; ++k)
                            is_valid = is_valid && read<W>(block.data() + k * sizeof(W)) == maybe_swapped(read<W>(data.at(k / n, k % n)), swap);
                        expect(is_valid, "gather_rows", {kItem, static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(n), row_stride, stride, swap});
                    }
}

template <class W>
void transposes() {
    constexpr auto kItem = static_cast<std::ptrdiff_t>(sizeof(W));
    constexpr std::size_t kWidth = 16 / sizeof(W), kMost = std::min<std::size_t>(3 * kWidth + 2, 36);
    for (std::size_t rows = 0; rows <= kMost; ++rows)
        for (std::size_t columns = 0; columns <= kMost; ++columns)
            for (const std::ptrdiff_t gap : {std::ptrdiff_t{0}, kItem, std::ptrdiff_t{3}, std::ptrdiff_t{-1}}) {
                const std::ptrdiff_t packed = static_cast<std::ptrdiff_t>(rows) * kItem, stride = gap < 0 ? -packed : packed + gap;
                const int rounds = gap == 0 && rows * columns > 256 / sizeof(W) ? 2 : 1;
                for (int round = 0; round < rounds; ++round) {
                    Strided<W> data(columns, rows, stride, kItem, 1);  // one run of `rows` items for each column
                    data.show(round);
                    Buffer block(rows * columns * sizeof(W), 5);
                    transpose<W>(block.data(), data.first, stride, rows, columns);
                    bool is_valid = true;
                    for (std::size_t k = 0; k < rows * columns; ++k)
                        is_valid = is_valid && read<W>(block.data() + k * sizeof(W)) == token<W>(k % columns * rows + k / columns, round);
                    expect(is_valid, "transpose", {kItem, static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(columns), stride});
                }
            }
}

void streams() {
    for (std::size_t bytes = 0; bytes <= 3 * kLine + 5; ++bytes)
        for (std::size_t offset = 0; offset < kLine; ++offset) {
            Buffer from(bytes, offset * 7 % kLine), to(bytes, offset);
            for (std::size_t i = 0; i < bytes; ++i) from.data()[i] = static_cast<char>(i + 1);
            stream(to.data(), from.data(), bytes);
            end_streams();
            const bool is_valid = std::memcmp(to.data(), from.data(), bytes) == 0;
            expect(is_valid && to.is_whole(), "stream", {static_cast<std::ptrdiff_t>(bytes), static_cast<std::ptrdiff_t>(offset)});
        }
}

// ---------------------------------------------------------------------------- indices

// An element type with only two operations: canonicalize, and compare with a result.
template <class Word>
struct __attribute__((packed, may_alias)) Held {
    Word word;

    friend bool operator==(Held a, Held b) { return a.word == b.word; }
};
template <class Word>
struct HeldOrder {
    using Bits = Held<Word>;
    using Key = Held<Word>;
    // clears the highest bit, in which noncanonical elements differ, like other NaNs
    static Scalar<Bits> canonical(Scalar<Bits> bits) {
        return {{static_cast<Word>(bits.v.word & static_cast<Word>(static_cast<Word>(~Word{0}) >> 1))}};
    }
};

// Returns element i, which equals the result of output `of` if `holds`. Every second element is noncanonical.
template <class Word>
Word element(bool holds, std::size_t of, std::size_t i) {
    const auto other = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
    const auto result = static_cast<Word>(2 * (of % 32) + 1);
    return static_cast<Word>((holds ? result : result + 1) | (i % 2 != 0 ? other : 0));
}
template <class Word>
Word result_of(std::size_t of) {
    return static_cast<Word>(2 * (of % 32) + 1);
}
// Calls act(set) for every set of elements that equal their results, or for sets of up to two if elements are many.
template <class Act>
void every_set(std::size_t count, const Act& act) {
    if (count <= 12) {
        std::vector<bool> set(count);
        for (unsigned bits = 0; bits < 1U << count; ++bits) {
            for (std::size_t i = 0; i < count; ++i) set[i] = bits >> i & 1;
            act(set);
        }
        return;
    }
    for (std::size_t a = 0; a < count; ++a)
        for (std::size_t b = a; b < count; b += b - a < 3 ? 1 : 5) {
            std::vector<bool> set(count);
            set[a] = set[b] = true;
            act(set);
        }
    act(std::vector<bool>(count));
    act(std::vector<bool>(count, true));
}

template <class Word>
void argmaxima() {
    using T = HeldOrder<Word>;
    constexpr auto kItem = static_cast<std::ptrdiff_t>(sizeof(Word));
    // argmax_rows: (rows, n) elements, with one result for each row
    for (const std::size_t rows : {1U, 2U})
        for (std::size_t n = 0; n <= 3 * kSearchBlockBytes / sizeof(Word) + 3 && rows * n <= 300; n += n < 12 ? 1 : 13)
            every_set(rows * n, [&](const std::vector<bool>& holds) {
                Strided<Word> data(rows, n, static_cast<std::ptrdiff_t>(n) * kItem + 3, kItem, 1);
                Buffer results(rows * sizeof(Word), 1);
                for (std::size_t r = 0; r < rows; ++r) {
                    const Word result = result_of<Word>(r);
                    std::memcpy(results.data() + r * sizeof(Word), &result, sizeof result);
                    for (std::size_t i = 0; i < n; ++i) {
                        const Word word = element<Word>(holds[r * n + i], r, i);
                        std::memcpy(data.at(r, i), &word, sizeof word);
                    }
                }
                std::vector<std::int64_t> indices(rows, -2);
                argmax_rows<T>(indices.data(), data.first, data.row_stride, results.data(), rows, n);
                bool is_valid = true;
                for (std::size_t r = 0; r < rows; ++r) {
                    std::int64_t expected = -1;
                    for (std::size_t i = n; i > 0; --i) expected = holds[r * n + i - 1] ? static_cast<std::int64_t>(i - 1) : expected;
                    is_valid = is_valid && indices[r] == expected;
                }
                expect(is_valid, "argmax_rows", {kItem, static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(n)});
            });
    // argmax_columns: up to kIndexRows rows, with some indices already known
    constexpr std::size_t kColumns = kIndexBlockBytes / sizeof(Word);
    for (std::size_t rows = 0; rows <= std::min<std::size_t>(kIndexRows, 3); ++rows)
        for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{3}, kColumns, kColumns + 1, 2 * kColumns + 1}) {
            if (rows * n > 40) continue;
            every_set(rows * n, [&](const std::vector<bool>& holds) {
                for (int known = 0; known < 3; ++known) {
                    Strided<Word> data(rows, n, static_cast<std::ptrdiff_t>(n) * kItem + 1, kItem, 1);
                    Buffer results(n * sizeof(Word), 1);
                    std::vector<std::int64_t> indices(n, -1), expected;
                    for (std::size_t j = 0; j < n; ++j) {
                        const Word result = result_of<Word>(j);
                        std::memcpy(results.data() + j * sizeof(Word), &result, sizeof result);
                        if (known > 0 && j % 2 == static_cast<std::size_t>(known - 1)) indices[j] = 4;
                    }
                    expected = indices;
                    std::size_t found = 0;
                    for (std::size_t r = 0; r < rows; ++r)
                        for (std::size_t j = 0; j < n; ++j) {
                            const Word word = element<Word>(holds[r * n + j], j, r + j);
                            std::memcpy(data.at(r, j), &word, sizeof word);
                            if (!holds[r * n + j] || expected[j] >= 0) continue;
                            expected[j] = static_cast<std::int64_t>(10 + r);
                            ++found;
                        }
                    const std::size_t put = argmax_columns<T>(indices.data(), 10, data.first, data.row_stride, rows, results.data(), n);
                    expect(indices == expected && put == found, "argmax_columns", {kItem, static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(n), known});
                }
            });
        }
}

template <class Word, class Id>
void argmax_of_segments(std::size_t most_rows) {
    using T = HeldOrder<Word>;
    constexpr auto kItem = static_cast<std::ptrdiff_t>(sizeof(Word));
    constexpr std::size_t kBlock = kIndexLineBytes / sizeof(Word);
    for (const std::size_t width : {std::size_t{1}, std::size_t{2}, kBlock, kBlock + 1, 2 * kBlock + 1})
        for (std::size_t rows = 0; rows <= (width == 1 ? most_rows : 2) && rows * width <= 40; ++rows) {
            // ids of segments 1 and 2, and ids outside of these segments
            std::size_t all_ids = 1;
            for (std::size_t r = 0; r < rows; ++r) all_ids *= 4;
            for (std::size_t which = 0; which < all_ids; ++which)
                every_set(rows * width, [&](const std::vector<bool>& holds) {
                    Buffer ids(rows * sizeof(Id), 1), results(2 * (width * sizeof(Word) + 1), 1);
                    Strided<Word> data(rows, width, static_cast<std::ptrdiff_t>(width) * kItem + 1, kItem, 1);
                    std::vector<std::int64_t> indices(2 * (width + 1), -1);
                    indices[0] = 11;  // an index that is already known, possibly of a later row
                    std::vector<std::int64_t> expected = indices;
                    for (std::size_t s = 0; s < 2; ++s)
                        for (std::size_t j = 0; j < width; ++j) {
                            const Word result = result_of<Word>(s + 2 * j);
                            std::memcpy(results.data() + s * (width * sizeof(Word) + 1) + j * sizeof(Word), &result, sizeof result);
                        }
                    for (std::size_t r = 0, left = which; r < rows; ++r, left /= 4) {
                        const auto id = static_cast<Id>(left % 4 == 3 ? -1 : static_cast<int>(left % 4) + (left % 4 == 0 ? 3 : 0));
                        std::memcpy(ids.data() + r * sizeof(Id), &id, sizeof id);
                        const bool is_inside = id == 1 || id == 2;
                        const std::size_t s = is_inside ? static_cast<std::size_t>(id - 1) : 0;
                        for (std::size_t j = 0; j < width; ++j) {
                            const Word word = element<Word>(holds[r * width + j], s + 2 * j, r);
                            std::memcpy(data.at(r, j), &word, sizeof word);
                            std::int64_t& index = expected[s * (width + 1) + j];
                            const auto row = static_cast<std::int64_t>(10 + r);
                            if (is_inside && holds[r * width + j] && (index < 0 || row < index)) index = row;
                        }
                    }
                    const SegmentArgmax to{results.data(), static_cast<std::ptrdiff_t>(width * sizeof(Word) + 1), indices.data(), width + 1, width, 1, 3};
                    argmax_segments<T, Id>(&to, 10, data.first, data.row_stride, ids.data(), rows);
                    expect(indices == expected, "argmax_segments", {kItem, static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(width), static_cast<std::ptrdiff_t>(which)});
                });
        }
}

template <class Word>
void all() {
    copies<Word>();
    transposes<Word>();
    argmaxima<Word>();
    argmax_of_segments<Word, std::int32_t>(4);
    argmax_of_segments<Word, std::int64_t>(3);
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops

int main() {
    using namespace maxops::MAXOPS_ISA;
    all<std::uint8_t>();
    all<std::uint16_t>();
    all<std::uint32_t>();
    all<std::uint64_t>();
    streams();
    std::printf("{\"states\":%llu,\"wrong\":%llu}\n", states, wrong);
    return wrong != 0;
}
