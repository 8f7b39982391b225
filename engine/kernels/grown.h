// Numbers that are added at the end and dropped at the front.
#pragma once

#include <cstdint>
#include <vector>

template <typename T>
class Grown {
    std::vector<T> all;
    size_t first = 0;

  public:
    int64_t size() const { return static_cast<int64_t>(all.size() - first); }
    T *data() { return all.data() + first; }
    const T *data() const { return all.data() + first; }

    void add(T number) { all.push_back(number); }

    void add(int64_t count, T number) { all.insert(all.end(), static_cast<size_t>(count), number); }

    // Returns the place of `count` numbers that are added, all of them zeros.
    T *room(int64_t count) {
        all.resize(all.size() + static_cast<size_t>(count));
        return all.data() + all.size() - count;
    }

    void drop(int64_t count) {
        first += static_cast<size_t>(count);
        if (2 * first <= all.size()) return;
        all = std::vector<T>(all.begin() + static_cast<int64_t>(first), all.end());
        first = 0;
    }
};
