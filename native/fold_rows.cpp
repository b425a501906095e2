#include "fold_rows.h"

namespace maxops {

FoldRows::FoldRows(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands,
                   bool streams)
    : kernels_(kernels), shape_(shape), operands_(operands), streams_(streams) {
    // Shorter rows had better be packed into blocks of many.
    constexpr std::size_t kShortest = 16, kShortestWithOne = 8;
    const std::size_t inputs = operands.size() - 1, inner = static_cast<std::size_t>(shape.rank - 1);
    const auto item = static_cast<std::ptrdiff_t>(kernels.itemsize);
    serves_ = inputs <= Kernels::kMostInputs && kernels.fold[inputs] != nullptr;
    int repeated = 0;
    for (std::size_t k = 0; k < operands.size() && serves_; ++k) {
        const Operand& operand = operands[k];
        if (inputs == 2 && k < inputs && operand.strides[inner] == 0) {
            repeated_ = static_cast<int>(k);
            ++repeated;
        } else if (operand.strides[inner] != item) {
            serves_ = false;
        }
        if (operand.swapped) serves_ = false;
    }
    const std::size_t shortest = repeated > 0 ? kShortestWithOne : kShortest;
    if (repeated > 1 || (shape.rank > 1 && shape.size[inner] < shortest)) serves_ = false;
}

void FoldRows::operator()(std::size_t begin, std::size_t end) const {
    if (!streams_) return take(begin, end, nullptr);
    alignas(64) char block[kBlockBytes];
    char* const out = operands_.back().data;
    while (begin < end) {
        char* to = out + begin * kernels_.itemsize;
        const std::size_t n = std::min(end - begin, items_to_stream(to, kernels_.itemsize));
        take(begin, begin + n, block);
        kernels_.stream(to, block, n * kernels_.itemsize);
        begin += n;
    }
}

void FoldRows::take(std::size_t begin, std::size_t end, char* block) const {
    const std::size_t inputs = operands_.size() - 1;
    const int inner = shape_.rank - 1;
    for_rows(
        shape_, begin, end, [&](const Position& position, std::size_t at, std::size_t rows, std::size_t n) {
            const void* in[Kernels::kMostInputs];
            std::ptrdiff_t strides[Kernels::kMostInputs + 1] = {};
            for (std::size_t k = 0; k < inputs; ++k)
                in[k] = operands_[k].data + position.offset(operands_[k]);
            if (rows > 1)
                for (std::size_t k = 0; k <= inputs; ++k) strides[k] = operands_[k].strides[inner - 1];
            const Operand& out = operands_[inputs];
            char* to = block == nullptr ? out.data + position.offset(out) : block + at * kernels_.itemsize;
            if (repeated_ < 0) {
                kernels_.fold[inputs](to, strides[inputs], in, strides, rows, n);
            } else {
                const int other = 1 - repeated_;
                kernels_.fold_rows_with(to, strides[2], in[other], strides[other], in[repeated_],
                                        strides[repeated_], rows, n);
            }
        });
}

}  // namespace maxops
