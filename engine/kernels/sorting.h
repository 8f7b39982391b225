// Orders rows by several keys in linear time.
#pragma once

#include "binding.h"

#include <algorithm>
#include <array>
#include <utility>

// Keys are packed into words, as many as fit, and rows are sorted by one word after the other, the one that
// counts least first, each by its digits. Rows that are in order already are only looked at.
class Sorting {
    static constexpr int DIGIT = 11;
    static constexpr int64_t FEW = 512;
    static constexpr size_t KEPT = 1 << 20;
    struct Item {
        uint64_t word;
        int64_t row;
    };
    struct Key {
        const int64_t *values;
        int64_t least;
        int bits;
    };
    std::vector<Key> keys;  // the one that counts least first
    // Kept between calls, unless they are large: fresh memory takes as long as a pass.
    static thread_local inline std::vector<Item> items, other;

    void pass(int from) {
        std::array<int64_t, 1 << DIGIT> begins{};
        auto digit = [from](const Item &item) { return item.word >> from & ((1u << DIGIT) - 1); };
        for (const Item &item : items) ++begins[digit(item)];
        int64_t before = 0;
        for (int64_t &begin : begins) before += std::exchange(begin, before);
        for (const Item &item : items) other[static_cast<size_t>(begins[digit(item)]++)] = item;
        items.swap(other);
    }

    void sort(int bits) {
        auto less = [](const Item &a, const Item &b) { return a.word < b.word; };
        if (std::is_sorted(items.begin(), items.end(), less)) return;
        if (static_cast<int64_t>(items.size()) < FEW)
            return std::stable_sort(items.begin(), items.end(), less);
        for (int from = 0; from < bits; from += DIGIT) pass(from);
    }

  public:
    explicit Sorting(int64_t count) {
        items.resize(static_cast<size_t>(count)), other.resize(static_cast<size_t>(count));
        for (int64_t row = 0; row < count; ++row) items[static_cast<size_t>(row)].row = row;
    }

    Sorting(const Sorting &) = delete;
    Sorting &operator=(const Sorting &) = delete;
    ~Sorting() {
        if (items.capacity() <= KEPT) return;
        std::vector<Item>().swap(items);
        std::vector<Item>().swap(other);
    }

    // Adds a key that counts more than those before.
    void add(const int64_t *values) {
        auto count = static_cast<ptrdiff_t>(items.size());
        auto [least, most] = std::minmax_element(values, values + count);
        uint64_t span = count == 0 ? 0 : static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least);
        if (span > 0) keys.push_back({values, *least, 64 - __builtin_clzll(span)});
    }

    void run() {
        for (size_t first = 0; first < keys.size();) {
            int bits = 0;
            size_t end = first;
            for (; end < keys.size() && bits + keys[end].bits <= 64; ++end) bits += keys[end].bits;
            for (Item &item : items) {
                uint64_t word = 0;
                for (size_t key = end; key-- > first;) {
                    const Key &of = keys[key];
                    uint64_t value = static_cast<uint64_t>(of.values[item.row]) - static_cast<uint64_t>(of.least);
                    word = of.bits == 64 ? value : word << of.bits | value;
                }
                item.word = word;
            }
            sort(bits);
            first = end;
        }
    }

    void write(int64_t *out) const {
        for (const Item &item : items) *out++ = item.row;
    }
};

// Writes the rows in the order of some keys, the last of which counts most; rows with equal keys stay in
// order.
inline PyObject *lexsort(PyObject *args) {
    PyObject *keys_, *out_;
    if (!PyArg_ParseTuple(args, "OO", &keys_, &out_)) throw Raised();
    Out out(out_, true);
    Py_ssize_t count = PyTuple_Size(keys_);
    if (count < 0) throw Raised();
    std::vector<Ints> keys;
    Sorting sorting(out.size);
    for (Py_ssize_t i = 0; i < count; ++i) {
        keys.emplace_back(PyTuple_GetItem(keys_, i));
        if (keys.back().size != out.size) throw std::length_error("keys of other lengths");
        sorting.add(keys.back().data);
    }
    sorting.run();
    sorting.write(out.data);
    Py_RETURN_NONE;
}
