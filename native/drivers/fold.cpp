// Max: any number of inputs, broadcast to one shape, folded block by block in one pass.
#include "fold_rows.h"
#include "fold_tiles.h"
#include "scratch.h"

namespace maxops {
namespace {

// Folds inputs of any layout. Inputs that are not contiguous along the rows are gathered into blocks that
// stay in cache. Rows shorter than kPackedRow are packed, many to a block; longer rows are used in place.
class Fold {
public:
    Fold(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands, bool streams)
        : kernels_(kernels), shape_(shape), operands_(operands), streams_(streams), inner_(shape.rank - 1) {
        packs_ = streams || (shape.rank > 1 && shape.size[inner_] < kPackedRow);
        bool all_in_place = operands.size() - 1 <= 4 || operands.size() - 1 == Kernels::kMostInputs;
        for (const Operand& operand : operands)
            all_in_place = all_in_place && (is_flat(operand) || (!packs_ && runs_in_place(operand)));
        longest_block_ = all_in_place && !streams ? shape.elements() : kBlockBytes / kernels.itemsize;
    }

    void operator()(std::size_t begin, std::size_t end) const {
        Position position(shape_, begin);
        const std::size_t row = shape_.size[inner_];
        while (begin < end) {
            std::size_t n = std::min(end - begin, longest_block_);
            if (!packs_) n = std::min(n, row - position[inner_]);
            if (streams_)
                n = std::min(
                    n, items_to_stream(operands_.back().data + begin * kernels_.itemsize, kernels_.itemsize));
            fold_block({position, begin, n});
            begin += n;
            if (!packs_)
                position.advance(shape_, inner_, n);
            else if (begin < end)
                position = Position(shape_, begin);
        }
    }

private:
    struct Block {
        const Position& position;
        std::size_t begin, n;
    };

    bool is_flat(const Operand& operand) const { return operand.is_contiguous(shape_, kernels_.itemsize); }
    bool runs_in_place(const Operand& operand) const {
        return !operand.swapped && operand.strides[inner_] == static_cast<std::ptrdiff_t>(kernels_.itemsize);
    }

    // The address of a block that is contiguous in its operand; null for other blocks.
    char* in_place(std::size_t k, const Block& block) const {
        const Operand& operand = operands_[k];
        if (is_flat(operand)) return operand.data + block.begin * kernels_.itemsize;
        if (packs_ || !runs_in_place(operand)) return nullptr;
        return operand.data + block.position.offset(operand);
    }

    // Calls visit(address, byte offset in the block, rows, n) for stacks of `rows` whole rows of n elements,
    // except for parts of rows at the ends.
    template <class Visit>
    void for_pieces(const Operand& operand, const Block& block, const Visit& visit) const {
        for_rows(shape_, block.begin, block.begin + block.n,
                 [&](const Position& position, std::size_t at, std::size_t rows, std::size_t n) {
                     visit(operand.data + position.offset(operand), at * kernels_.itemsize, rows, n);
                 });
    }

    std::ptrdiff_t row_stride(const Operand& operand) const {
        return inner_ > 0 ? operand.strides[inner_ - 1] : 0;
    }

    const void* fetch(std::size_t k, const Block& block, char* buffer) const {
        if (const char* here = in_place(k, block)) return here;
        const Operand& operand = operands_[k];
        for_pieces(operand, block, [&](const char* from, std::size_t to, std::size_t rows, std::size_t n) {
            kernels_.gather_rows(buffer + to, from, row_stride(operand), operand.strides[inner_], rows, n,
                                 operand.swapped);
        });
        return buffer;
    }

    void fold_block(const Block& block) const {
        constexpr int kMost = Kernels::kMostInputs;
        auto& [buffers, sums] = scratch<FoldBuffers>();
        const std::size_t inputs = operands_.size() - 1;
        const Operand& out = operands_[inputs];
        char* out_in_place = in_place(inputs, block);

        const void* sum = nullptr;  // the maximum of the inputs so far
        int spare = 0;
        for (std::size_t k = 0; k < inputs;) {
            std::size_t left = inputs - k + (sum != nullptr);
            std::size_t arity = left >= kMost ? kMost : left >= 4 ? 4 : left;
            const void* in[kMost];
            std::size_t i = 0;
            if (sum != nullptr) in[i++] = sum;
            for (; i < arity; ++i, ++k) in[i] = fetch(k, block, buffers[i]);
            bool last = k == inputs;
            void* to = last && out_in_place != nullptr && !streams_ ? out_in_place : sums[spare];
            kernels_.fold[arity](to, 0, in, kNoStrides, 1, block.n);
            sum = to;
            spare ^= 1;
        }
        if (out_in_place != nullptr) {
            if (streams_) kernels_.stream(out_in_place, sum, block.n * kernels_.itemsize);
            return;
        }
        auto* from = static_cast<const char*>(sum);
        for_pieces(out, block, [&](char* to, std::size_t offset, std::size_t rows, std::size_t n) {
            for (std::size_t r = 0; r < rows; ++r, to += row_stride(out), offset += n * kernels_.itemsize)
                kernels_.scatter(to, from + offset, out.strides[inner_], n, out.swapped);
        });
    }

    const Kernels& kernels_;
    const Shape& shape_;
    const std::vector<Operand>& operands_;
    const bool streams_;
    const int inner_;
    bool packs_;
    std::size_t longest_block_;
};

}  // namespace

bool fold(const Run& run, Shape& shape, std::vector<Operand>& operands) {
    const std::size_t itemsize = run.kernels.itemsize;
    if (shape.elements() == 0) return true;
    simplify(&shape, operands.data(), operands.size(), itemsize);
    const std::size_t count = shape.elements(), bytes = count * itemsize * operands.size();
    const bool streams =
        run.may_stream && bytes >= kStreamedBytes && operands.back().is_contiguous(shape, itemsize);
    auto in_tasks = [&](const auto& share) {
        return parallel_for(run, count, task_items(count, itemsize * operands.size(), kTaskAlignment), bytes,
                            [&](std::size_t begin, std::size_t end) {
                                share(begin, end);
                                if (streams) end_streams();
                            });
    };
    if (const FoldRows rows(run.kernels, shape, operands, streams); rows.serves()) return in_tasks(rows);
    if (const int across = axis_across(run.kernels, shape, operands); across >= 0)
        return fold_tiles(run, shape, operands, across);
    return in_tasks(Fold(run.kernels, shape, operands, streams));
}

}  // namespace maxops
