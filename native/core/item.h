// The bits of a single element, in native byte order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maxops {

template <class Word>
inline std::uint64_t word_at(const char* item) {
    Word word;
    std::memcpy(&word, item, sizeof word);
    return word;
}

inline std::uint64_t bits_of(const char* item, std::size_t itemsize) {
    if (itemsize == 1) return word_at<std::uint8_t>(item);
    if (itemsize == 2) return word_at<std::uint16_t>(item);
    return itemsize == 4 ? word_at<std::uint32_t>(item) : word_at<std::uint64_t>(item);
}

template <class Word>
inline void put_word(std::uint64_t bits, char* item) {
    const auto word = static_cast<Word>(bits);
    std::memcpy(item, &word, sizeof word);
}

inline void put_bits(std::uint64_t bits, std::size_t itemsize, char* item) {
    if (itemsize == 1) return put_word<std::uint8_t>(bits, item);
    if (itemsize == 2) return put_word<std::uint16_t>(bits, item);
    return itemsize == 4 ? put_word<std::uint32_t>(bits, item) : put_word<std::uint64_t>(bits, item);
}

}  // namespace maxops
