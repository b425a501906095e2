#include "fold_rows.h"

namespace maxops {

int repeated_operand(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands) {
    constexpr std::size_t kShortRow = 8;  // shorter ones had better be packed into blocks
    const int inner = shape.rank - 1;
    if (operands.size() != 3 || shape.size[inner] < kShortRow) return -1;
    for (const Operand& operand : operands)
        if (operand.swapped) return -1;
    const auto item = static_cast<std::ptrdiff_t>(kernels.itemsize);
    if (operands[2].strides[inner] != item) return -1;
    for (int k = 0; k < 2; ++k)
        if (operands[static_cast<std::size_t>(k)].strides[inner] == 0 &&
            operands[static_cast<std::size_t>(1 - k)].strides[inner] == item)
            return k;
    return -1;
}

void FoldRows::operator()(std::size_t begin, std::size_t end) const {
    const int inner = shape_.rank - 1;
    const std::size_t row = shape_.size[inner];
    alignas(64) char block[kBlockBytes];
    const std::size_t most = streams_ ? kBlockBytes / kernels_.itemsize : row;
    Position position(shape_, begin);
    while (begin < end) {
        const std::size_t n = std::min({end - begin, row - position[inner], most});
        std::size_t rows = 1;
        if (n == row && inner > 0 && !streams_)
            rows = std::min((end - begin) / row, shape_.size[inner - 1] - position[inner - 1]);
        auto stride = [&](const Operand& operand) { return rows == 1 ? 0 : operand.strides[inner - 1]; };
        char* to = out_.data + position.offset(out_);
        kernels_.fold_rows_with(streams_ ? block : to, stride(out_), in_.data + position.offset(in_),
                                stride(in_), items_.data + position.offset(items_), stride(items_), rows, n);
        if (streams_) kernels_.stream(to, block, n * kernels_.itemsize);
        begin += rows * n;
        if (rows == 1)
            position.advance(shape_, inner, n);
        else
            position.advance(shape_, inner - 1, rows);
    }
}

}  // namespace maxops
