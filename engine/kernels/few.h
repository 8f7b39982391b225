// Numbers that are mostly few: up to `held` of them are kept in place, more of them elsewhere.
//
// The state of a group has sums and queues, and there may be as many groups as rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

template <typename T, uint32_t held> class Few {
    struct Block {
        T *all;
        uint32_t first;
    };
    union {
        T here[held];
        Block there;
    } at = {};
    uint32_t count = 0, most = 0;  // most: the room elsewhere, 0 if they are here

    int64_t room() const { return most > 0 ? most - at.there.first : held; }

    // Moves the numbers to where there is room for `to` of them, behind some others.
    void move(int64_t to, int64_t front = 0) {
        if (to > UINT32_MAX) throw std::length_error("more than 2^32 numbers");
        auto *moved = new T[static_cast<size_t>(to)];
        std::copy(begin(), end(), moved + front);
        if (most > 0) delete[] at.there.all;
        at.there = {moved, 0};
        most = static_cast<uint32_t>(to);
    }

    // Takes less room if there is far more than is needed.
    void fit() {
        if (most == 0) return;
        if (count < held) {
            const Block block = at.there;
            std::copy_n(block.all + block.first, count, at.here);
            delete[] block.all;
            most = 0;
        } else if (most > 64 && 4 * size() < most) {
            move(2 * size());
        }
    }

  public:
    Few() = default;
    Few(const Few &) = delete;
    Few &operator=(const Few &) = delete;
    Few(Few &&other) noexcept { *this = std::move(other); }
    Few &operator=(Few &&other) noexcept {
        std::swap(at, other.at), std::swap(count, other.count), std::swap(most, other.most);
        return *this;
    }
    ~Few() {
        if (most > 0) delete[] at.there.all;
    }

    int64_t size() const { return count; }
    T *begin() { return most > 0 ? at.there.all + at.there.first : at.here; }
    const T *begin() const { return most > 0 ? at.there.all + at.there.first : at.here; }
    T *end() { return begin() + count; }
    const T *end() const { return begin() + count; }
    T &operator[](int64_t place) { return begin()[place]; }
    const T &operator[](int64_t place) const { return begin()[place]; }
    T &back() { return end()[-1]; }

    void add(T number) {
        if (count == room()) {
            if (most > 0 && 5 * (size() + 1) <= int64_t(4) * most) {
                std::copy(begin(), end(), at.there.all);
                at.there.first = 0;
            } else {
                move(2 + size() + size() / 3);
            }
        }
        ++count;
        back() = number;
    }

    // Adds zeros on both sides.
    void widen(int64_t front, int64_t behind) {
        const int64_t before = size(), after = front + before + behind;
        if (after > room())
            move(after, front);
        else if (front > 0)
            std::copy_backward(begin(), end(), end() + front);
        std::fill_n(begin(), front, 0);
        std::fill_n(begin() + front + before, behind, 0);
        count = static_cast<uint32_t>(after);
    }

    // Drops numbers at the front.
    void drop(int64_t some) {
        count -= static_cast<uint32_t>(some);
        if (most > 0)
            at.there.first += static_cast<uint32_t>(some);
        else
            std::copy_n(at.here + some, count, at.here);
        fit();
    }

    // Drops numbers at the end.
    void pop(int64_t some = 1) {
        count -= static_cast<uint32_t>(some);
        fit();
    }
};
