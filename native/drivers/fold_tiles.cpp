// Max with transposed inputs, whose neighbours along a row of the output are far apart in memory. Tiles of
// these inputs are transposed in cache, so that each cache line is fetched once.
#include "fold_tiles.h"

#include "scratch.h"

namespace maxops {
namespace {

// A tile has kTileColumns columns, and kTileRunBytes of each.
class Tiles {
public:
    Tiles(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands, int across)
        : kernels_(kernels),
          operands_(operands),
          inner_(shape.rank - 1),
          across_(across),
          columns_(shape.size[shape.rank - 1]),
          rows_(shape.size[across]),
          others_(shape) {
        rows_each_ = kTileRunBytes / kernels.itemsize;
        bands_ = (rows_ + rows_each_ - 1) / rows_each_;
        others_.size[inner_] = 1;
        others_.size[across] = bands_;  // counts bands of rows
    }

    std::size_t bands() const { return others_.elements(); }
    std::size_t band_bytes() const {
        return std::min(rows_each_, rows_) * columns_ * kernels_.itemsize * operands_.size();
    }

    void operator()(std::size_t begin, std::size_t end) const {
        for (std::size_t flat = begin; flat < end; ++flat) {
            const Position band(others_, flat);
            const std::size_t row = band[across_] * rows_each_;
            for (std::size_t column = 0; column < columns_; column += kTileColumns)
                take(band, row, std::min(rows_each_, rows_ - row), column,
                     std::min(kTileColumns, columns_ - column));
        }
    }

private:
    bool is_transposed(const Operand& operand) const {
        return operand.strides[inner_] != static_cast<std::ptrdiff_t>(kernels_.itemsize);
    }

    char* address(const Operand& operand, const Position& band, std::size_t row, std::size_t column) const {
        std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(row) * operand.strides[across_] +
                               static_cast<std::ptrdiff_t>(column) * operand.strides[inner_];
        for (int axis = 0; axis < others_.rank; ++axis)
            if (axis != across_) bytes += static_cast<std::ptrdiff_t>(band[axis]) * operand.strides[axis];
        return operand.data + bytes;
    }

    void take(const Position& band, std::size_t row, std::size_t rows, std::size_t column,
              std::size_t columns) const {
        auto& tiles = scratch<TileBuffers>().tiles;
        const std::size_t inputs = operands_.size() - 1;
        const auto item = static_cast<std::ptrdiff_t>(kernels_.itemsize);
        const void* from[Kernels::kMostInputs];
        std::ptrdiff_t step[Kernels::kMostInputs];
        int used = 0;
        for (std::size_t k = 0; k < inputs; ++k) {
            const Operand& operand = operands_[k];
            from[k] = address(operand, band, row, column);
            step[k] = operand.strides[across_];
            if (!is_transposed(operand)) continue;
            char* tile = tiles[used++];
            const auto line = static_cast<std::ptrdiff_t>(columns) * item;
            kernels_.transpose(tile, from[k], operand.strides[inner_], rows, columns);
            from[k] = tile;
            step[k] = line;
        }
        const Operand& out = operands_[inputs];
        char* to = address(out, band, row, column);
        kernels_.fold[inputs](to, out.strides[across_], from, step, rows, columns);
    }

    const Kernels& kernels_;
    const std::vector<Operand>& operands_;
    const int inner_, across_;
    const std::size_t columns_, rows_;
    std::size_t rows_each_, bands_;
    Shape others_;
};

}  // namespace

int axis_across(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands) {
    const int inner = shape.rank - 1;
    const auto item = static_cast<std::ptrdiff_t>(kernels.itemsize);
    const std::size_t inputs = operands.size() - 1;
    if (inputs > Kernels::kMostInputs || kernels.fold[inputs] == nullptr) return -1;
    int across = -1;
    std::size_t transposed = 0;
    for (std::size_t k = 0; k < operands.size(); ++k) {
        const Operand& operand = operands[k];
        if (operand.swapped) return -1;
        if (operand.strides[inner] == item) continue;
        if (k == inputs || ++transposed > kTileInputs) return -1;
        int found = -1;
        for (int axis = 0; axis < inner; ++axis)
            if (operand.strides[axis] == item && shape.size[axis] > 1) found = axis;
        if (found < 0 || (across >= 0 && found != across)) return -1;
        across = found;
    }
    if (across < 0 || shape.size[across] < kTileWorthwhile || shape.size[inner] < kTileWorthwhile) return -1;
    return across;
}

bool fold_tiles(const Run& run, const Shape& shape, const std::vector<Operand>& operands, int across) {
    const Tiles tiles(run.kernels, shape, operands, across);
    return parallel_for(run, tiles.bands(), task_items(tiles.bands(), tiles.band_bytes()),
                        tiles.bands() * tiles.band_bytes(), tiles);
}

}  // namespace maxops
