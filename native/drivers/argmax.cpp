// The argmax of a ReduceMax: the first element along the reduced axes that equals each maximum.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "iterate.h"
#include "scratch.h"

namespace maxops {
namespace {

class AxesArgmax {
public:
    explicit AxesArgmax(const Kernels& kernels, const ArgmaxCall& call)
        : kernels_(kernels), data_(call.data.data) {
        Operand kept[3] = {call.data, call.results, call.indices};
        for (int axis = 0; axis < call.shape.rank; ++axis) {
            const std::size_t size = call.shape.size[axis];
            if (call.is_reduced[axis]) {
                add_reduced(size, call.data.strides[axis]);
                continue;
            }
            for (Operand& operand : kept) operand.strides[kept_.rank] = operand.strides[axis];
            kept_.size[kept_.rank++] = size;
        }
        swapped_ = call.data.swapped;
        if (reduced_.rank == 0) add_axis(1, 0);
        simplify(&kept_, kept, 3, kernels.itemsize);
        in_kept_ = kept[0];
        results_ = kept[1];
        indices_ = kept[2];
        inner_ = kept_.rank - 1;
        const int last = reduced_.rank - 1;
        rows_lie_ = is_item(reduced_strides_[last], reduced_.size[last]);
        columns_lie_ = is_item(in_kept_.strides[inner_], kept_.size[inner_]);
        by_rows_ = outputs() == 1 || (elements_each() > 1 &&
                                      std::abs(reduced_strides_[last]) <= std::abs(in_kept_.strides[inner_]));
    }

    std::size_t outputs() const { return kept_.elements(); }
    std::size_t elements_each() const { return reduced_.elements(); }
    std::size_t positions() const { return reduced_.size[0]; }  // parts are ranges of positions
    std::size_t least() const { return by_rows_ ? 1 : kIndexStrip; }

    // Searches outputs [begin, end), in C order over the kept axes in memory order, at positions [from, to)
    // of the outermost reduced axis. Calls write(output, its address in the array of indices, index).
    template <class Write>
    void take(std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
              const Write& write) const {
        char* results = scratch<IndexBuffers>().results;
        std::int64_t* indices = scratch<IndexBuffers>().indices;
        Position position(kept_, begin);
        while (begin < end) {
            const std::size_t n = std::min({end - begin, kIndexStrip, kept_.size[inner_] - position[inner_]});
            const char* data = data_ + position.offset(in_kept_);
            kernels_.gather(results, results_.data + position.offset(results_), results_.strides[inner_], n,
                            results_.swapped);
            if (by_rows_)
                rows(indices, data, results, n, from, to);
            else
                columns(indices, data, results, n, from, to);
            char* here = indices_.data + position.offset(indices_);
            for (std::size_t i = 0; i < n; ++i)
                write(begin + i, here + static_cast<std::ptrdiff_t>(i) * indices_.strides[inner_],
                      indices[i]);
            begin += n;
            position.advance(kept_, inner_, n);
        }
    }

private:
    void add_axis(std::size_t size, std::ptrdiff_t stride) {
        reduced_.size[reduced_.rank] = size;
        reduced_strides_[reduced_.rank++] = stride;
    }
    // Adds a reduced axis. Merges it with the axis before if both are one run of memory. The order of the
    // elements stays the same.
    void add_reduced(std::size_t size, std::ptrdiff_t stride) {
        if (size == 1) return;
        const int last = reduced_.rank - 1;
        if (last >= 0 && reduced_strides_[last] == stride * static_cast<std::ptrdiff_t>(size)) {
            reduced_.size[last] *= size;
            reduced_strides_[last] = stride;
        } else {
            add_axis(size, stride);
        }
    }
    bool is_item(std::ptrdiff_t stride, std::size_t n) const {
        return !swapped_ && (stride == static_cast<std::ptrdiff_t>(kernels_.itemsize) || n == 1);
    }

    // Calls visit(address, first index, stride, n) for each innermost run, until it returns false.
    template <class Visit>
    void for_runs(const char* data, std::size_t from, std::size_t to, const Visit& visit) const {
        Shape part = reduced_;
        part.size[0] = to - from;
        const int last = part.rank - 1;
        const std::size_t length = part.size[last], total = part.elements();
        const std::size_t before = from * (reduced_.elements() / reduced_.size[0]);
        Position position(part);
        for (std::size_t done = 0; done < total; done += length) {
            std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(from) * reduced_strides_[0];
            for (int axis = 0; axis < part.rank; ++axis)
                offset += static_cast<std::ptrdiff_t>(position[axis]) * reduced_strides_[axis];
            if (!visit(data + offset, before + done, reduced_strides_[last], length)) return;
            position.advance(part, last, length);
        }
    }

    void rows(std::int64_t* indices, const char* data, const char* results, std::size_t n, std::size_t from,
              std::size_t to) const {
        const std::ptrdiff_t across = in_kept_.strides[inner_];
        if (rows_lie_ && reduced_.rank == 1) {
            kernels_.argmax_rows(indices, data + static_cast<std::ptrdiff_t>(from) * reduced_strides_[0],
                                 across, results, n, to - from);
            for (std::size_t i = 0; i < n; ++i)
                indices[i] += indices[i] < 0 ? 0 : static_cast<std::int64_t>(from);
            return;
        }
        for (std::size_t i = 0; i < n; ++i, data += across, results += kernels_.itemsize) {
            indices[i] = -1;
            for_runs(data, from, to,
                     [&](const char* run, std::size_t place, std::ptrdiff_t stride, std::size_t m) {
                         indices[i] =
                             rows_lie_ ? in_run(run, results, m) : in_gathered(run, stride, results, m);
                         if (indices[i] < 0) return true;
                         indices[i] += static_cast<std::int64_t>(place);
                         return false;
                     });
        }
    }
    std::int64_t in_run(const char* run, const char* result, std::size_t n) const {
        std::int64_t place = -1;
        kernels_.argmax_rows(&place, run, 0, result, 1, n);
        return place;
    }
    std::int64_t in_gathered(const char* run, std::ptrdiff_t stride, const char* result,
                             std::size_t n) const {
        char* block = scratch<IndexBuffers>().run;
        const std::size_t most = kBlockBytes / kernels_.itemsize;
        for (std::size_t at = 0; at < n; at += most) {
            const std::size_t m = std::min(most, n - at);
            kernels_.gather(block, run + static_cast<std::ptrdiff_t>(at) * stride, stride, m, swapped_);
            if (const std::int64_t place = in_run(block, result, m); place >= 0)
                return place + static_cast<std::int64_t>(at);
        }
        return -1;
    }

    void columns(std::int64_t* indices, const char* data, const char* results, std::size_t n,
                 std::size_t from, std::size_t to) const {
        char* block = scratch<IndexBuffers>().rows;
        const auto width = static_cast<std::ptrdiff_t>(n * kernels_.itemsize);
        std::fill(indices, indices + n, -1);
        std::size_t left = n;
        for_runs(data, from, to,
                 [&](const char* run, std::size_t place, std::ptrdiff_t stride, std::size_t m) {
                     const std::size_t most = columns_lie_ ? kIndexRows : kIndexGatheredRows;
                     for (std::size_t r = 0; r < m && left > 0; r += most) {
                         const std::size_t rows = std::min(most, m - r);
                         const char* here = run + static_cast<std::ptrdiff_t>(r) * stride;
                         if (!columns_lie_)
                             kernels_.gather_rows(block, here, stride, in_kept_.strides[inner_], rows, n,
                                                  swapped_);
                         left -= kernels_.argmax_columns(indices, static_cast<std::int64_t>(place + r),
                                                         columns_lie_ ? here : block,
                                                         columns_lie_ ? stride : width, rows, results, n);
                     }
                     return left > 0;
                 });
    }

    const Kernels& kernels_;
    const char* data_;
    Shape kept_, reduced_;  // the reduced axes keep their order
    std::ptrdiff_t reduced_strides_[kMaxRank];
    Operand in_kept_, results_, indices_;
    bool swapped_, by_rows_, rows_lie_, columns_lie_;
    int inner_;
};

}  // namespace

bool argmax_in_axes(const Run& run, const ArgmaxCall& call) {
    const AxesArgmax whole(run.kernels, call);
    const std::size_t outputs = whole.outputs(), itemsize = run.kernels.itemsize;
    const std::size_t bytes = outputs * whole.elements_each() * itemsize;
    const auto put = [](std::size_t, char* to, std::int64_t place) { std::memcpy(to, &place, sizeof place); };

    const std::size_t grain = std::max(kTaskBytes / (whole.elements_each() * itemsize), whole.least());
    const std::size_t most =
        std::max(kPartsEnough, static_cast<std::size_t>(num_threads())) * kPartsPerThread;
    const std::size_t parts =
        std::min({bytes / kTaskBytes, most, whole.positions(), whole.elements_each() / kPartElements});
    if (bytes < kThreadedBytes || outputs / whole.least() >= kPartsEnough || parts < 2)
        return parallel_for(run, outputs, grain, bytes, [&](std::size_t begin, std::size_t end) {
            whole.take(begin, end, 0, whole.positions(), put);
        });

    // Few outputs of many elements: search parts of the outermost reduced axis. The first part with a match
    // has the first match. Tasks start in order, so later tasks of a single output often skip the search.
    std::vector<std::int64_t> partial(parts * outputs, -1);
    std::atomic<std::size_t> found{parts};
    const auto task = [&](std::size_t i) {
        if (outputs == 1 && found.load(std::memory_order_relaxed) < i) return;
        const std::size_t n = whole.positions();
        whole.take(
            0, outputs, i * n / parts, (i + 1) * n / parts,
            [&](std::size_t output, char*, std::int64_t place) { partial[i * outputs + output] = place; });
        if (outputs == 1 && partial[i] >= 0)
            for (std::size_t now = found.load(); i < now && !found.compare_exchange_weak(now, i);) {
            }
    };
    if (!run_tasks(parts, task, run.poll, bytes < kLongBytes)) return false;
    // A search in an empty range provides the address of each output's index.
    whole.take(0, outputs, 0, 0, [&](std::size_t output, char* to, std::int64_t) {
        std::int64_t place = -1;
        for (std::size_t i = 0; i < parts && place < 0; ++i) place = partial[i * outputs + output];
        std::memcpy(to, &place, sizeof place);
    });
    return true;
}

}  // namespace maxops
