// Numbers that are added at the end and dropped at the front.
#pragma once

#include "room.h"

#include <algorithm>
#include <cstdint>
#include <utility>

// A few numbers have room for a third to all of them beyond; many have room for three times as many, which takes no
// memory. While as many come and leave as are there, each is moved three times at most.
template <typename T>
class Grown {
    Room<T> all;
    int64_t first = 0, stop = 0, most = 0;

    static constexpr int64_t PART = 1 << 16;

    // Moves to an array with room for `held` numbers and some more. Of what is large, not both are there as a whole.
    void move(int64_t held) {
        bool large = Room<T>::large(held);
        most = large ? 4 * held : std::max<int64_t>(4, held + held / 2);
        Room<T> moved(most, large);
        T *to = moved.get();
        for (int64_t part; first < stop; first += part, to += part) {
            part = std::min(stop - first, PART);
            std::copy_n(all.get() + first, part, to);
            all.give_back(first + part);
        }
        all = std::move(moved);
        stop = to - all.get(), first = 0;
    }

  public:
    Grown() = default;
    Grown(const Grown &) = delete;
    Grown &operator=(const Grown &) = delete;
    Grown(Grown &&other) noexcept { *this = std::move(other); }
    Grown &operator=(Grown &&other) noexcept {
        std::swap(all, other.all), std::swap(most, other.most);
        std::swap(first, other.first), std::swap(stop, other.stop);
        return *this;
    }

    int64_t size() const { return stop - first; }
    T *data() { return all.get() + first; }
    const T *data() const { return all.get() + first; }
    T *begin() { return data(); }
    T *end() { return all.get() + stop; }
    const T *begin() const { return data(); }
    const T *end() const { return all.get() + stop; }
    T &operator[](int64_t place) { return data()[place]; }
    const T &operator[](int64_t place) const { return data()[place]; }

    void add(T number) { *unset(1) = number; }

    void add(int64_t count, T number) { std::fill_n(unset(count), count, number); }

    void add(const T *numbers, int64_t count) { std::copy_n(numbers, count, unset(count)); }

    // Returns the place of `count` numbers that are added, whatever they are.
    T *unset(int64_t count) {
        int64_t held = size() + count;
        if (stop + count > most) {
            if (4 * held <= 3 * most && !all.has_pages()) {
                std::copy(all.get() + first, all.get() + stop, all.get());
                stop -= first, first = 0;
            } else {
                move(held);
            }
        }
        stop += count;
        return all.get() + stop - count;
    }

    // Returns the place of `count` numbers that are added, all of them zeros.
    T *room(int64_t count) {
        T *place = unset(count);
        std::fill_n(place, count, T());
        return place;
    }

    void drop(int64_t count) {
        first += count;
        all.give_back(first);
        if (most > 64 && (all.has_pages() ? 32 : 4) * size() < most) move(size());
    }

    // Drops numbers at the end.
    void pop(int64_t count = 1) { stop -= count; }
};
