// Max with streaming stores on a simulated machine whose stores become visible only at the thread's fence,
// which is all that the architecture guarantees. Prints the number of correct outputs and the number of
// stores.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

static void delayed_fence();
#define __builtin_ia32_sfence delayed_fence
#include "drivers/fold.cpp"
#include "drivers/fold_rows.cpp"
#include "drivers/fold_tiles.cpp"
#include "drivers/iterate.cpp"
#include "drivers/scratch.cpp"
#include "drivers/system.cpp"
#include "drivers/threads.cpp"

namespace {

using namespace maxops;
using Item = std::uint32_t;
constexpr std::ptrdiff_t kItem = sizeof(Item);

struct Store {
    void* to;
    std::vector<char> bytes;
};
thread_local std::vector<Store> pending;
std::atomic<int> streamed{0};

void stream(void* to, const void* block, std::size_t bytes) {
    auto* from = static_cast<const char*>(block);
    ++streamed;
    pending.push_back({to, std::vector<char>(from, from + bytes)});
}

Item item_at(const void* from, std::ptrdiff_t offset) {
    Item item;
    std::memcpy(&item, static_cast<const char*>(from) + offset, sizeof item);
    return item;
}
void put(void* to, std::ptrdiff_t offset, Item item) {
    std::memcpy(static_cast<char*>(to) + offset, &item, sizeof item);
}

template <int count>
void fold_items(void* out, std::ptrdiff_t out_stride, const void* const* in, const std::ptrdiff_t* strides,
                std::size_t rows, std::size_t n) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < n; ++i) {
            const auto row = static_cast<std::ptrdiff_t>(r), at = static_cast<std::ptrdiff_t>(i) * kItem;
            Item highest = 0;
            for (int k = 0; k < count; ++k)
                highest = std::max(highest, item_at(in[k], row * strides[k] + at));
            put(out, row * out_stride + at, highest);
        }
}
void fold_rows_with(void* out, std::ptrdiff_t out_stride, const void* in, std::ptrdiff_t in_stride,
                    const void* items, std::ptrdiff_t item_stride, std::size_t rows, std::size_t n) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < n; ++i) {
            const auto row = static_cast<std::ptrdiff_t>(r), at = static_cast<std::ptrdiff_t>(i) * kItem;
            put(out, row * out_stride + at,
                std::max(item_at(in, row * in_stride + at), item_at(items, row * item_stride)));
        }
}
void gather_rows(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                 std::size_t rows, std::size_t n, bool) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < n; ++i)
            put(block, static_cast<std::ptrdiff_t>(r * n + i) * kItem,
                item_at(data, static_cast<std::ptrdiff_t>(r) * row_stride +
                                  static_cast<std::ptrdiff_t>(i) * stride));
}
void transpose(void* block, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t columns) {
    for (std::size_t c = 0; c < columns; ++c)
        for (std::size_t r = 0; r < rows; ++r)
            put(block, static_cast<std::ptrdiff_t>(r * columns + c) * kItem,
                item_at(data,
                        static_cast<std::ptrdiff_t>(c) * stride + static_cast<std::ptrdiff_t>(r) * kItem));
}

Kernels kernels() {
    Kernels k{};
    k.itemsize = sizeof(Item);
    k.fold[1] = fold_items<1>;
    k.fold[2] = fold_items<2>;
    k.fold[3] = fold_items<3>;
    k.fold[4] = fold_items<4>;
    k.fold[8] = fold_items<8>;
    k.fold_rows_with = fold_rows_with;
    k.gather_rows = gather_rows;
    k.transpose = transpose;
    k.stream = stream;
    return k;
}

// The strides of inputs of rows x columns with items `step` apart, broadcast along an axis or not.
struct Layout {
    std::ptrdiff_t row, column;
};

bool is_valid(const Run& run, std::size_t rows, std::size_t columns, const std::vector<Layout>& layouts) {
    std::vector<std::vector<Item>> data;
    std::vector<Operand> operands;
    for (std::size_t k = 0; k < layouts.size(); ++k) {
        data.emplace_back(2 * rows * columns + 2);
        for (std::size_t i = 0; i < data[k].size(); ++i)
            data[k][i] = static_cast<Item>((i + 7 * k) * 2654435761u);
        operands.emplace_back(reinterpret_cast<char*>(data[k].data()));
        operands[k].strides[0] = layouts[k].row * kItem;
        operands[k].strides[1] = layouts[k].column * kItem;
    }
    std::vector<Item> out(rows * columns + 16, 0xAAAAAAAA);
    Item* const first = out.data() + 3;  // between two cache lines
    operands.emplace_back(reinterpret_cast<char*>(first));
    operands.back().strides[0] = static_cast<std::ptrdiff_t>(columns) * kItem;
    operands.back().strides[1] = kItem;
    Shape shape;
    shape.rank = 2;
    shape.size[0] = rows;
    shape.size[1] = columns;
    fold(run, shape, operands);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) {
            Item highest = 0;
            for (std::size_t k = 0; k < layouts.size(); ++k)
                highest = std::max(highest, data[k][r * static_cast<std::size_t>(layouts[k].row) +
                                                    c * static_cast<std::size_t>(layouts[k].column)]);
            if (first[r * columns + c] != highest) return false;
        }
    return pending.empty();
}

}  // namespace

static void delayed_fence() {
    for (const Store& store : pending) std::memcpy(store.to, store.bytes.data(), store.bytes.size());
    pending.clear();
}

int main() {
    const Kernels table = kernels();
    const Run run{table, nullptr, true};
    if (!reserve_scratch()) return 1;
    int right = 0;
    for (int threads = 1; threads <= 3; ++threads) {
        set_num_threads(threads);
        for (std::size_t rows : {1, 2, 5, 40})
            for (std::size_t columns : {1, 2, 3, 7, 16, 100, 333}) {
                const auto width = static_cast<std::ptrdiff_t>(columns);
                const Layout kinds[] = {{width, 1}, {0, 1}, {1, 0}, {2 * width, 2}, {0, 0}, {width + 1, 1}};
                for (const Layout& a : kinds) {
                    for (const Layout& b : kinds)
                        for (std::size_t more : {0, 1, 6, 7}) {
                            std::vector<Layout> layouts(more, a);
                            layouts.push_back(b);
                            if (!is_valid(run, rows, columns, layouts)) {
                                std::printf("%d threads, %zu x %zu, %zu inputs: an output without a store\n",
                                            threads, rows, columns, layouts.size());
                                return 1;
                            }
                            ++right;
                        }
                }
            }
    }
    std::printf("%d %d\n", right, streamed.load());
}
