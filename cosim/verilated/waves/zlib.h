// The part of zlib that Verilator's FST writer needs, so that recording waves depends on no library
// that may be missing. It stores without compressing; the writer keeps the original of any data
// that does not shrink.

#pragma once

#include <cstdint>
#include <cstring>

using Bytef = unsigned char;
using uLong = unsigned long;
using uLongf = unsigned long;
constexpr int Z_OK = 0;
constexpr int Z_BUF_ERROR = -5;

inline uLong compressBound(uLong size) { return size + 5 * (size / 65535 + 1) + 6; }

inline int compress2(Bytef *to, uLongf *length, const Bytef *from, uLong size, int) {
    if (*length < compressBound(size)) return Z_BUF_ERROR;
    const Bytef *const begin = to;
    *to++ = 0x78;
    *to++ = 0x01;
    uint32_t a = 1, b = 0;  // Adler-32
    uLong left = size;
    do {
        const uLong count = left < 65535 ? left : 65535;
        left -= count;
        *to++ = left == 0;
        for (uLong half : {count, ~count}) {
            *to++ = Bytef(half);
            *to++ = Bytef(half >> 8);
        }
        if (count) std::memcpy(to, from, count);
        for (uLong i = 0; i < count; ++i) {
            a = (a + from[i]) % 65521;
            b = (b + a) % 65521;
        }
        to += count;
        from += count;
    } while (left);
    for (uint32_t sum : {b, a}) {
        *to++ = Bytef(sum >> 8);
        *to++ = Bytef(sum);
    }
    *length = uLongf(to - begin);
    return Z_OK;
}
