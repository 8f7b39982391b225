// A sum without rounding: a value that was added can be subtracted without a trace, in any order.
//
// Limb i counts multiples of 2^(32 i - 1088), so that both the smallest double and the largest sum
// fit. Only the limbs in use are stored. A limb has room for 2^30 additions before carries are due.
#pragma once

#include "binding.h"
#include "few.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

class Exact {
    static constexpr int64_t MASK = 0xFFFFFFFF;
    static constexpr int ONE = 34;  // the limb that counts ones
    static constexpr int LEAST = 32 * ONE;

    // A real as a multiple of a power of two.
    struct Parts {
        uint64_t mantissa;
        int place;  // of the last bit, from 2^-1088 on
        bool negative;

        explicit Parts(double value) {
            uint64_t bits;
            std::memcpy(&bits, &value, 8);
            int exponent = static_cast<int>(bits >> 52 & 0x7FF);
            mantissa = bits & 0xFFFFFFFFFFFFFu;
            if (exponent) mantissa |= uint64_t(1) << 52;
            place = LEAST - 1075 + (exponent ? exponent : 1);
            negative = bits >> 63 != 0;
        }
    };

    Few<int64_t, 3> limbs;
    int low = 0;  // number of limbs[0]
    uint32_t added = 0;

    int64_t *from(int first, int count) {
        if (is_new()) low = first;
        int64_t front = std::max(low - first, 0), behind = first + count - low - limbs.size();
        if (front > 0 || behind > 0) limbs.widen(front, std::max<int64_t>(behind, 0));
        low = std::min(low, first);
        if (++added >= 1u << 30) carry();
        return limbs.begin() + (first - low);
    }

    // Reduces all limbs to 32 bits except the last, which carries the sign.
    void carry() {
        added = 0;
        if (is_new()) return;
        for (int64_t i = 0; i + 1 < limbs.size(); ++i) {
            limbs[i + 1] += limbs[i] >> 32;
            limbs[i] &= MASK;
        }
        if (limbs.back() > MASK || limbs.back() < -MASK) {
            limbs.add(limbs.back() >> 32);
            limbs[limbs.size() - 2] &= MASK;
        }
    }

    // Computes the absolute value in limbs of 32 bits; returns whether the sum is negative.
    bool absolute(std::vector<uint32_t> &found) {
        carry();
        bool negative = !is_new() && limbs.back() < 0;
        found.clear();
        int64_t rest = 0;
        for (int64_t limb : limbs) {
            rest += negative ? -limb : limb;
            found.push_back(static_cast<uint32_t>(rest & MASK));
            rest >>= 32;
        }
        if (rest) found.push_back(static_cast<uint32_t>(rest));
        while (!found.empty() && found.back() == 0) found.pop_back();
        return negative;
    }

    // Divides in place; returns the remainder.
    static uint64_t divide(std::vector<uint32_t> &number, uint64_t by) {
        uint64_t rest = 0;
        for (size_t i = number.size(); i-- > 0;) {
            uint64_t part = rest << 32 | number[i];
            number[i] = static_cast<uint32_t>(part / by);
            rest = part % by;
        }
        while (!number.empty() && number.back() == 0) number.pop_back();
        return rest;
    }

  public:
    // Returns whether nothing was ever added.
    bool is_new() const { return limbs.size() == 0; }

    // Adds the words of which `take` makes the same sum.
    void give(std::vector<int64_t> &words) {
        carry();
        words.push_back(low);
        words.push_back(limbs.size());
        words.insert(words.end(), limbs.begin(), limbs.end());
    }

    // Takes a sum from words; returns the first word after it.
    const int64_t *take(const int64_t *words, const int64_t *end) {
        if (end - words < 2 || words[0] < 0 || words[0] > 4 * ONE || words[1] < 0 || words[1] > end - words - 2)
            throw std::out_of_range("no words of a sum");
        low = static_cast<int>(words[0]);
        limbs = {};
        limbs.widen(0, words[1]);
        std::copy_n(words + 2, words[1], limbs.begin());
        added = 0;
        return words + 2 + words[1];
    }

    // Appends the sum in limbs of 32 bits, the last of 64, least first, as one number with a sign. Returns the
    // number of the first limb.
    int64_t bytes(std::string &to) {
        carry();
        for (int64_t i = 0; i < limbs.size(); ++i)
            for (int bit = 0; bit < (i + 1 < limbs.size() ? 32 : 64); bit += 8)
                to.push_back(static_cast<char>(static_cast<uint64_t>(limbs[i]) >> bit & 0xFF));
        return low;
    }

    // Adds another sum.
    void add(Exact &other) {
        other.carry();
        if (other.is_new()) return;
        int64_t *at = from(other.low, static_cast<int>(other.limbs.size()));
        for (int64_t limb : other.limbs) *at++ += limb;
    }

    void add(double value, bool negative) {
        Parts one(value);
        if (one.mantissa == 0) return;
        int shift = one.place & 31;
        uint64_t down = one.mantissa << shift, up = shift ? one.mantissa >> (64 - shift) : 0;
        int64_t *at = from(one.place >> 5, 3);
        int64_t sign = one.negative != negative ? -1 : 1;
        at[0] += sign * static_cast<int64_t>(down & MASK);
        at[1] += sign * static_cast<int64_t>(down >> 32);
        at[2] += sign * static_cast<int64_t>(up);
    }

    // Adds a product. In a sum of products limb i counts multiples of 2^(32 i - 2176).
    void add_product(double a, double b, bool negative) {
        Parts one(a), other(b);
        if (one.mantissa == 0 || other.mantissa == 0) return;
        uint64_t a0 = one.mantissa & MASK, a1 = one.mantissa >> 32;
        uint64_t b0 = other.mantissa & MASK, b1 = other.mantissa >> 32;
        uint64_t middle = a0 * b1 + a1 * b0, down = a0 * b0 + (middle << 32);
        uint64_t up = a1 * b1 + (middle >> 32) + (down < a0 * b0), top = 0;
        int place = one.place + other.place, shift = place & 31;
        if (shift) {
            top = up >> (64 - shift);
            up = up << shift | down >> (64 - shift);
            down <<= shift;
        }
        int64_t *at = from(place >> 5, 5);
        int64_t sign = (one.negative != other.negative) != negative ? -1 : 1;
        at[0] += sign * static_cast<int64_t>(down & MASK);
        at[1] += sign * static_cast<int64_t>(down >> 32);
        at[2] += sign * static_cast<int64_t>(up & MASK);
        at[3] += sign * static_cast<int64_t>(up >> 32);
        at[4] += sign * static_cast<int64_t>(top);
    }

    void add(int64_t value, bool negative) { add(value, value < 0 ? -1 : 0, negative); }

    // Adds a 128-bit number.
    void add(int64_t down_, int64_t up_, bool negative) {
        auto down = static_cast<uint64_t>(down_), up = static_cast<uint64_t>(up_);
        bool below = up_ < 0;
        if (below) {
            down = ~down + 1;
            up = ~up + (down == 0);
        }
        int64_t sign = below != negative ? -1 : 1;
        int64_t *at = from(ONE, up ? 4 : 2);
        at[0] += sign * static_cast<int64_t>(down & MASK);
        at[1] += sign * static_cast<int64_t>(down >> 32);
        if (!up) return;
        at[2] += sign * static_cast<int64_t>(up & MASK);
        at[3] += sign * static_cast<int64_t>(up >> 32);
    }

    // Returns the double nearest to the sum divided by a number, and the even one of two equally
    // near.
    double real(uint64_t by, std::vector<uint32_t> &number) {
        bool negative = absolute(number);
        if (number.empty()) return 0.0;
        int exponent = 32 * low - LEAST;  // of the last bit of `number`
        bool more = false;
        if (by != 1) {
            int further = number.size() < 5 ? 4 : 0;
            number.insert(number.begin(), static_cast<size_t>(further), 0);
            exponent -= 32 * further;
            more = divide(number, by) != 0;
        }
        size_t size = number.size();
        uint64_t top = 0;
        int taken = 0;
        for (; taken < 2 && size > 0; ++taken) top = top << 32 | number[--size];
        exponent += 32 * static_cast<int>(size);
        int width = 64;
        while (!(top >> (width - 1))) --width;
        if (size > 0 && width < 64) {  // take bits of one more limb
            int missing = 64 - width, rest = 32 - missing;
            uint32_t limb = number[--size];
            top = top << missing | limb >> rest;
            more = more || (limb & ((uint64_t(1) << rest) - 1)) != 0;
            exponent -= missing;
            width = 64;
        }
        while (size > 0 && !more) more = number[--size] != 0;
        // A double holds 53 of the `width` bits of `top`, fewer if it is subnormal.
        int kept = std::min(53, exponent + width + 1074);
        int away = width - kept;
        if (away > 64) return negative ? -0.0 : 0.0;
        if (away > 0) {
            uint64_t half = uint64_t(1) << (away - 1);
            uint64_t rest = away == 64 ? top : top & ((half << 1) - 1);
            top = away == 64 ? 0 : top >> away;
            if (rest > half || (rest == half && (more || (top & 1)))) ++top;
            exponent += away;
        }
        double found = std::ldexp(static_cast<double>(top), exponent);
        return negative ? -found : found;
    }

    // Divides a sum of integers by a number, rounding towards zero; returns false if the quotient
    // exceeds 64 bits.
    bool whole(uint64_t by, std::vector<uint32_t> &number, int64_t &found) {
        bool negative = absolute(number);
        if (by != 1) divide(number, by);
        if (number.size() > 2) return false;
        uint64_t size = 0;
        for (size_t i = number.size(); i-- > 0;) size = size << 32 | number[i];
        if (size > static_cast<uint64_t>(INT64_MAX) + negative) return false;
        found = static_cast<int64_t>(negative ? ~size + 1 : size);
        return true;
    }

    // Multiplies a sum of integers by one number and divides it by another, rounding halves away
    // from zero. Writes two words; returns false if the result has more than 38 digits.
    bool wide(uint32_t times, uint64_t by, std::vector<uint32_t> &number, int64_t *found) {
        bool negative = absolute(number);
        uint64_t rest = 0;
        for (uint32_t &limb : number) {
            rest += static_cast<uint64_t>(limb) * times;
            limb = static_cast<uint32_t>(rest & MASK);
            rest >>= 32;
        }
        if (rest) number.push_back(static_cast<uint32_t>(rest));
        if (2 * divide(number, by) >= by && by != 1) {
            size_t i = 0;
            while (i < number.size() && ++number[i] == 0) ++i;
            if (i == number.size()) number.push_back(1);
        }
        if (number.size() > 4) return false;
        number.resize(4, 0);
        uint64_t down = static_cast<uint64_t>(number[1]) << 32 | number[0];
        uint64_t up = static_cast<uint64_t>(number[3]) << 32 | number[2];
        // 10^38
        constexpr uint64_t UP = 0x4B3B4CA85A86C47A, DOWN = 0x098A224000000000;
        if (up > UP || (up == UP && down >= DOWN)) return false;
        if (negative) {
            down = ~down + 1;
            up = ~up + (down == 0);
        }
        found[0] = static_cast<int64_t>(down);
        found[1] = static_cast<int64_t>(up);
        return true;
    }
};
