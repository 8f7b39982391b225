// Numbers that are added at the end and dropped at the front, such as times: four bytes each while they are near each
// other.
#pragma once

#include "grown.h"

#include <algorithm>
#include <cstdint>

class Nearby {
    Grown<uint32_t> above;  // how far they are above `base`
    Grown<int64_t> whole;   // the numbers, once they are far from each other
    int64_t base = 0;
    bool far = false;

    static uint64_t apart(int64_t low, int64_t high) { return static_cast<uint64_t>(high) - static_cast<uint64_t>(low); }

    bool fits(int64_t number) const { return apart(base, number) <= UINT32_MAX; }

    // Makes it possible to hold a number that does not fit.
    void settle(int64_t number) {
        int64_t low = number, high = number;
        for (int64_t i = 0; i < size(); ++i) low = std::min(low, (*this)[i]), high = std::max(high, (*this)[i]);
        if (apart(low, high) < UINT32_MAX / 2) {
            for (uint32_t &one : above) one = static_cast<uint32_t>(apart(low, base + one));
            base = low;
            return;
        }
        far = true;
        for (uint32_t one : above) whole.add(base + one);
        above = {};
    }

  public:
    int64_t size() const { return far ? whole.size() : above.size(); }
    int64_t operator[](int64_t place) const { return far ? whole[place] : base + above[place]; }

    void set(int64_t place, int64_t number) {
        if (!far && !fits(number)) settle(number);
        if (far)
            whole[place] = number;
        else
            above[place] = static_cast<uint32_t>(apart(base, number));
    }

    void add(int64_t number) {
        if (size() == 0) base = number, far = false;
        if (!far && !fits(number)) settle(number);
        if (far)
            whole.add(number);
        else
            above.add(static_cast<uint32_t>(apart(base, number)));
    }

    void drop(int64_t count) { far ? whole.drop(count) : above.drop(count); }
};
