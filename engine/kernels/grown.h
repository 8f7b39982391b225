// Numbers that are added at the end and dropped at the front.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

// There is room for a third to all of the numbers beyond them. While as many come and leave as are there,
// each is moved three times at most.
template <typename T>
class Grown {
    std::unique_ptr<T[]> all;
    int64_t first = 0, stop = 0, most = 0;

    void move(int64_t to) {
        std::unique_ptr<T[]> moved(new T[static_cast<size_t>(to)]);
        std::copy(all.get() + first, all.get() + stop, moved.get());
        all = std::move(moved);
        stop -= first, first = 0, most = to;
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
            if (4 * held <= 3 * most) {
                std::copy(all.get() + first, all.get() + stop, all.get());
                stop -= first, first = 0;
            } else {
                move(std::max<int64_t>(4, held + held / 2));
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
        if (4 * size() < most && most > 64) move(2 * size());
    }

    // Drops numbers at the end.
    void pop(int64_t count = 1) { stop -= count; }
};
