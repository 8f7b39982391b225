// The part of LZ4 that Verilator's FST writer needs, so that recording waves depends on no library
// that may be missing: a simple, greedy compressor of LZ4 blocks, written from the public format
// description. Docs: docs/decisions/0016-waves-without-libraries.md.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

// Writes a run of literals, then (unless it is the last) a copy of `match` bytes from `offset`
// back.
inline uint8_t *lz4_sequence(uint8_t *to, const uint8_t *literals, int count, int match,
                             int offset) {
    auto rest = [&to](int length) {
        for (length -= 15; length >= 255; length -= 255) *to++ = 255;
        *to++ = uint8_t(length);
    };
    uint8_t *token = to++;
    *token = uint8_t((count < 15 ? count : 15) << 4);
    if (count >= 15) rest(count);
    if (count) std::memcpy(to, literals, count);
    to += count;
    if (!match) return to;
    *to++ = uint8_t(offset);
    *to++ = uint8_t(offset >> 8);
    match -= 4;
    *token |= uint8_t(match < 15 ? match : 15);
    if (match >= 15) rest(match);
    return to;
}

inline int LZ4_compress_default(const char *source, char *destination, int size, int capacity) {
    if (capacity < LZ4_compressBound(size)) return 0;
    const auto *from = reinterpret_cast<const uint8_t *>(source);
    auto *to = reinterpret_cast<uint8_t *>(destination);
    auto *const begin = to;
    std::vector<int> last(1 << 12, -1);  // the last place of four bytes with this hash
    int at = 0, literals = 0;
    while (at + 12 < size) {  // matches start at least 12 and end at least 5 bytes before the end
        uint32_t four;
        std::memcpy(&four, from + at, 4);
        int &seen = last[(four * 2654435761u) >> 20];
        const int candidate = seen;
        seen = at;
        if (candidate < 0 || at - candidate > 65535 || std::memcmp(from + candidate, from + at, 4)) {
            ++at;
            continue;
        }
        int match = 4;
        while (at + match < size - 5 && from[candidate + match] == from[at + match]) ++match;
        to = lz4_sequence(to, from + literals, at - literals, match, at - candidate);
        at += match;
        literals = at;
    }
    to = lz4_sequence(to, from + literals, size - literals, 0, 0);
    return int(to - begin);
}
