#include "fold_rows.h"

namespace maxops {

FoldRows::FoldRows(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands,
                   bool streams)
    : kernels_(kernels), shape_(shape), operands_(operands), streams_(streams) {
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
    // Shorter rows are faster if they are packed into blocks of many.
    const std::size_t shortest = repeated > 0 ? kFoldedRowWithOne : kFoldedRow;
    if (repeated > 1 || (shape.rank > 1 && shape.size[inner] < shortest)) serves_ = false;
}

void FoldRows::operator()(std::size_t begin, std::size_t end) const {
    if (!streams_) return take(begin, end, nullptr);
    if (shape_.size[shape_.rank - 1] >= kStreamedRow) return stream_rows(begin, end);
    alignas(64) char block[kStreamedBlockBytes];
    char* const out = operands_.back().data;
    while (begin < end) {
        char* to = out + begin * kernels_.itemsize;
        const std::size_t n = std::min(end - begin, items_to_stream(to, kernels_.itemsize));
        take(begin, begin + n, block);
        kernels_.stream(to, block, n * kernels_.itemsize);
        begin += n;
    }
}

FoldRows::Rows FoldRows::rows_at(const Position& position, std::size_t rows, std::size_t n) const {
    const std::size_t inputs = operands_.size() - 1;
    const int inner = shape_.rank - 1;
    Rows at{{}, {}, rows, n};
    for (std::size_t k = 0; k < inputs; ++k) at.in[k] = operands_[k].data + position.offset(operands_[k]);
    if (rows > 1)
        for (std::size_t k = 0; k <= inputs; ++k) at.strides[k] = operands_[k].strides[inner - 1];
    return at;
}

void FoldRows::fold(char* to, const Rows& at) const {
    const std::size_t inputs = operands_.size() - 1;
    if (repeated_ < 0) {
        kernels_.fold[inputs](to, at.strides[inputs], at.in, at.strides, at.rows, at.n);
    } else {
        const int other = 1 - repeated_;
        kernels_.fold_rows_with(to, at.strides[2], at.in[other], at.strides[other], at.in[repeated_],
                                at.strides[repeated_], at.rows, at.n);
    }
}

void FoldRows::take(std::size_t begin, std::size_t end, char* block) const {
    const Operand& out = operands_.back();
    for_rows(shape_, begin, end,
             [&](const Position& position, std::size_t at, std::size_t rows, std::size_t n) {
                 fold(block == nullptr ? out.data + position.offset(out) : block + at * kernels_.itemsize,
                      rows_at(position, rows, n));
             });
}

void FoldRows::stream_rows(std::size_t begin, std::size_t end) const {
    alignas(64) char block[kStreamedBlockBytes];
    const std::size_t inputs = operands_.size() - 1, item = kernels_.itemsize;
    char* to = operands_.back().data + begin * item;
    for_rows(shape_, begin, end, [&](const Position& position, std::size_t, std::size_t rows, std::size_t n) {
        const Rows all = rows_at(position, rows, n);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t i = 0; i < n;) {
                Rows piece{{}, {}, 1, std::min(n - i, items_to_stream(to, item))};
                for (std::size_t k = 0; k < inputs; ++k)
                    piece.in[k] = static_cast<const char*>(all.in[k]) +
                                  static_cast<std::ptrdiff_t>(row) * all.strides[k] +
                                  (static_cast<int>(k) == repeated_ ? 0 : i * item);
                fold(block, piece);
                kernels_.stream(to, block, piece.n * item);
                to += piece.n * item;
                i += piece.n;
            }
    });
}

}  // namespace maxops
