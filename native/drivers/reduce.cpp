// ReduceMax: the maximum along the reduced axes, for each element of the output.
#include <atomic>
#include <cstring>

#include "iterate.h"
#include "scratch.h"

namespace maxops {
namespace {

bool holds_highest(const Kernels& kernels, const char* element) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element, kernels.itemsize);  // on big-endian machines, this only misses the shortcut
    return bits == kernels.highest;
}

class Reduce {
public:
    // The axes are simplified. Axes where the output has stride 0 are reduced.
    Reduce(const Kernels& kernels, const Shape& shape, const Operand& data, const Operand& out)
        : kernels_(kernels), data_(data), out_(out) {
        data_in_kept_.swapped = data_in_reduced_.swapped = data.swapped;
        for (int axis = 0; axis < shape.rank; ++axis) {
            bool is_reduced = out.strides[axis] == 0;
            Shape& part = is_reduced ? reduced_ : kept_;
            (is_reduced ? data_in_reduced_ : data_in_kept_).strides[part.rank] = data.strides[axis];
            if (!is_reduced) out_.strides[part.rank] = out.strides[axis];
            part.size[part.rank++] = shape.size[axis];
        }
        row_is_reduced_ = out.strides[shape.rank - 1] == 0;
        add_axis_if_none(&kept_, &data_in_kept_);
        if (kept_.elements() == 1) out_.strides[0] = 0;
        add_axis_if_none(&reduced_, &data_in_reduced_);
        const int inner = reduced_.rank - 1;
        rows_are_apart_ = row_is_reduced_ && inner > 0 &&
                          reduced_.size[inner] <= kLongRowBytes / kernels.itemsize &&
                          runs_in_place(data_in_reduced_.strides[inner], reduced_.size[inner]);
        // Prefer to split the outermost axis, because its parts are the longest runs of memory.
        const std::size_t* sizes = reduced_.size;
        split_ = sizes[0] >= kPartsEnough
                     ? 0
                     : static_cast<int>(std::max_element(sizes, sizes + reduced_.rank) - sizes);
    }

    std::size_t outputs() const { return kept_.elements(); }
    std::size_t elements_each() const { return reduced_.elements(); }
    std::size_t places() const { return reduced_.size[split_]; }  // along the axis that is split
    bool row_is_reduced() const { return row_is_reduced_; }

    // The same reduction over a part of the axis that is split, to a contiguous output of shape (outputs(),).
    Reduce part(std::size_t begin, std::size_t end, char* out) const {
        Reduce part = *this;
        part.data_.data += static_cast<std::ptrdiff_t>(begin) * data_in_reduced_.strides[split_];
        part.reduced_.size[split_] = end - begin;
        part.out_.data = out;
        part.out_.swapped = false;
        auto step = item();
        for (int axis = kept_.rank - 1; axis >= 0; --axis) {
            part.out_.strides[axis] = step;
            step *= static_cast<std::ptrdiff_t>(kept_.size[axis]);
        }
        return part;
    }

    // Reduces the outputs of `parts` parts, one after the other in `partial`, to the output.
    void finish_parts(std::size_t parts, char* partial) const {
        Shape stacked;
        Operand from(partial), to = out_;
        auto step = item();
        for (int axis = kept_.rank - 1; axis >= 0; --axis) {
            stacked.size[axis + 1] = kept_.size[axis];
            from.strides[axis + 1] = step;
            to.strides[axis + 1] = out_.strides[axis];
            step *= static_cast<std::ptrdiff_t>(kept_.size[axis]);
        }
        stacked.rank = kept_.rank + 1;
        stacked.size[0] = parts;
        from.strides[0] = step;
        to.strides[0] = 0;
        Reduce(kernels_, stacked, from, to)(0, outputs());
    }

    // Computes outputs [begin, end), counted in C order over the kept axes.
    void operator()(std::size_t begin, std::size_t end) const {
        char *keys = scratch<ReduceBuffers>().keys, *values = scratch<ReduceBuffers>().values;
        const int inner = kept_.rank - 1;
        Position position(kept_, begin);
        while (begin < end) {
            std::size_t n =
                std::min({end - begin, kKeyBytes / kernels_.itemsize, kept_.size[inner] - position[inner]});
            const char* from = data_.data + position.offset(data_in_kept_);
            char* to = out_.data + position.offset(out_);
            if (n == 1 && rows_are_apart_) {
                take_rows_apart(keys, from);
            } else {
                std::size_t groups = row_is_reduced_ ? 1 : groups_of(n);
                kernels_.start(keys, n * groups);
                take_all(keys, from, n, groups);
                kernels_.merge(keys, groups, n);
            }
            if (!out_.swapped && (n == 1 || out_.strides[inner] == item())) {
                kernels_.finish(to, keys, n);
            } else {
                kernels_.finish(values, keys, n);
                kernels_.scatter(to, values, out_.strides[inner], n, out_.swapped);
            }
            begin += n;
            position.advance(kept_, inner, n);
        }
    }

private:
    std::ptrdiff_t item() const { return static_cast<std::ptrdiff_t>(kernels_.itemsize); }

    static void add_axis_if_none(Shape* shape, Operand* operand) {
        if (shape->rank > 0) return;
        shape->size[shape->rank++] = 1;
        operand->strides[0] = 0;
    }

    bool runs_in_place(std::ptrdiff_t stride, std::size_t n) const {
        return !data_.swapped && (stride == item() || n == 1);
    }

    // The number of adjacent rows to reduce as one row: several if each is shorter than a vector.
    std::size_t groups_of(std::size_t n) const {
        const int inner = reduced_.rank - 1;
        const std::size_t bytes = n * kernels_.itemsize;
        bool follow = runs_in_place(data_in_kept_.strides[kept_.rank - 1], n) &&
                      data_in_reduced_.strides[inner] == static_cast<std::ptrdiff_t>(bytes);
        std::size_t groups = follow && bytes < kGroupedRowBytes ? kGroupsBytes / bytes : 1;
        return reduced_.size[inner] >= 2 * groups ? groups : 1;
    }

    // Reduces all elements of n adjacent outputs. The first element is at `from`.
    void take_all(char* keys, const char* from, std::size_t n, std::size_t groups) const {
        const int inner = reduced_.rank - 1;
        const std::size_t length = reduced_.size[inner];
        const std::size_t total = reduced_.elements();
        Position position(reduced_);
        for (std::size_t done = 0; done < total; done += length) {
            const char* here = from + position.offset(data_in_reduced_);
            if (row_is_reduced_)
                take_rows(keys, here, n, length);
            else
                take_columns(keys, here, n, length, groups);
            position.advance(reduced_, inner, length);
        }
    }

    // One output, over rows that are apart in memory: reduces several rows at a time as columns, and merges
    // the maxima of the columns. Columns beyond the width of a strip are folded onto the strip.
    void take_rows_apart(char* keys, const char* from) const {
        const int inner = reduced_.rank - 1;
        const std::size_t columns = reduced_.size[inner], rows = reduced_.size[inner - 1];
        const std::size_t strip = std::min(columns, kStripBytes / kernels_.itemsize);
        kernels_.start(keys, strip);
        Position position(reduced_);
        for (std::size_t done = 0; done < reduced_.elements(); done += rows * columns) {
            const char* here = from + position.offset(data_in_reduced_);
            for (std::size_t column = 0; column < columns; column += strip)
                kernels_.columns(keys, here + column * kernels_.itemsize, data_in_reduced_.strides[inner - 1],
                                 rows, std::min(strip, columns - column));
            position.advance(reduced_, inner - 1, rows);
        }
        kernels_.merge(keys, strip, 1);
    }

    // n outputs, each over a row of `length` elements
    void take_rows(char* keys, const char* from, std::size_t n, std::size_t length) const {
        const std::ptrdiff_t across = data_in_kept_.strides[kept_.rank - 1];
        const std::ptrdiff_t along = data_in_reduced_.strides[reduced_.rank - 1];
        if (runs_in_place(along, length)) {
            kernels_.rows(keys, from, across, n, length);
            return;
        }
        for (std::size_t r = 0; r < n; ++r, from += across)
            in_blocks(from, along, length, [&](const char* block, std::size_t, std::size_t m) {
                char* const key = keys + r * kernels_.itemsize;
                kernels_.rows(key, block, 0, 1, m);
                return !is_saturated(key);
            });
    }

    // n outputs, over `length` rows of n elements
    void take_columns(char* keys, const char* from, std::size_t n, std::size_t length,
                      std::size_t groups) const {
        const std::ptrdiff_t across = data_in_reduced_.strides[reduced_.rank - 1];
        const std::ptrdiff_t along = data_in_kept_.strides[kept_.rank - 1];
        if (runs_in_place(along, n)) {
            auto step = static_cast<std::ptrdiff_t>(groups) * across;
            std::size_t turns = length / groups;
            kernels_.columns(keys, from, step, turns, n * groups);
            kernels_.columns(keys, from + static_cast<std::ptrdiff_t>(turns) * step, across, length % groups,
                             n);
            return;
        }
        for (std::size_t r = 0; r < length; ++r, from += across)
            in_blocks(from, along, n, [&](const char* block, std::size_t at, std::size_t m) {
                kernels_.columns(keys + at * kernels_.itemsize, block, 0, 1, m);
                return true;
            });
    }

    // Whether an output has already reached the highest value.
    bool is_saturated(const char* key) const {
        char value[8];
        kernels_.finish(value, key, 1);
        return holds_highest(kernels_, value);
    }

    // Copies n elements block by block, and calls visit(block, at, m) until it returns false. The first block
    // is short, because many rows are saturated after it.
    template <class Visit>
    void in_blocks(const char* from, std::ptrdiff_t stride, std::size_t n, const Visit& visit) const {
        char* block = scratch<ReduceBuffers>().gathered;
        const std::size_t most = kBlockBytes / kernels_.itemsize;
        const std::size_t first = std::min(kFirstBlockBytes, kBlockBytes) / kernels_.itemsize;
        for (std::size_t at = 0, m = 0; at < n; at += m) {
            m = std::min(at == 0 ? first : most, n - at);
            kernels_.gather(block, from + static_cast<std::ptrdiff_t>(at) * stride, stride, m, data_.swapped);
            if (!visit(block, at, m)) return;
        }
    }

    const Kernels& kernels_;
    Operand data_, out_;  // out_'s strides are those of the kept axes
    Shape kept_, reduced_;
    Operand data_in_kept_{}, data_in_reduced_{};  // the data's strides along the kept and reduced axes
    bool row_is_reduced_, rows_are_apart_;
    int split_;  // the reduced axis that is split into parts
};

}  // namespace

bool reduce(const Run& run, Shape& shape, Operand (&operands)[2]) {
    auto& [data, out] = operands;
    const std::size_t itemsize = run.kernels.itemsize;
    // A maximum ignores order and repetition: reverse negative strides, and read repeated elements once.
    for (int axis = 0; axis < shape.rank; ++axis) {
        if (out.strides[axis] != 0) continue;
        if (data.strides[axis] == 0) shape.size[axis] = 1;
        if (data.strides[axis] < 0) {
            data.data += static_cast<std::ptrdiff_t>(shape.size[axis] - 1) * data.strides[axis];
            data.strides[axis] = -data.strides[axis];
        }
    }
    simplify(&shape, operands, 2, itemsize);
    const Reduce whole(run.kernels, shape, data, out);

    const std::size_t outputs = whole.outputs();
    const std::size_t bytes = outputs * whole.elements_each() * itemsize;
    // A task takes enough adjacent columns to read long runs of memory.
    const std::size_t least = whole.row_is_reduced() ? kTaskRows : kTaskStripBytes / itemsize;
    const std::size_t grain = std::max(kTaskBytes / (whole.elements_each() * itemsize), least);
    // Enough parts for every thread, but not so many that their maxima cost as much as the elements.
    const std::size_t most =
        std::max(kPartsEnough, static_cast<std::size_t>(num_threads())) * kPartsPerThread;
    const std::size_t parts =
        std::min({bytes / kTaskBytes, most, whole.places(), whole.elements_each() / kPartElements});
    if (bytes < kThreadedBytes || outputs / least >= kPartsEnough || parts < 2)
        return parallel_for(run, outputs, grain, bytes, whole);

    // Few outputs of many elements: reduce parts of a reduced axis, then merge their maxima.
    std::vector<char> partial(parts * outputs * itemsize);
    // The first element of the highest value, such as NaN or True, saturates a single output. The other parts
    // may then stay zero. If the first elements saturate it, no thread needs to wake.
    std::atomic<bool> is_saturated{false};
    if (outputs == 1 && whole.places() == whole.elements_each()) {
        whole.part(0, std::min(whole.places(), kSaturationPeek), partial.data())(0, 1);
        is_saturated.store(holds_highest(run.kernels, partial.data()));
    }
    auto task = [&](std::size_t i) {
        if (is_saturated.load(std::memory_order_relaxed)) return;
        const std::size_t n = whole.places();
        char* to = partial.data() + i * outputs * itemsize;
        whole.part(i * n / parts, (i + 1) * n / parts, to)(0, outputs);
        if (outputs == 1 && holds_highest(run.kernels, to))
            is_saturated.store(true, std::memory_order_relaxed);
    };
    if (!is_saturated.load() && !run_tasks(parts, task, run.poll, bytes < kLongBytes)) return false;
    whole.finish_parts(parts, partial.data());
    return true;
}

}  // namespace maxops
