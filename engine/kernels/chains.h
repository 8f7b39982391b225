// Rows by key: a hash table whose entries lead to the newest row of a key, each row to the one before.
//
// Windows are suffixes of what has arrived, so that a walk from the newest row on stops with the first
// that is too old. Rows enter the table when the first probe may meet them: a probe that arrived
// earlier does not walk over them.
#pragma once

#include "probes.h"

#include <algorithm>

inline uint64_t mixed(uint64_t bits) {
    bits = (bits ^ bits >> 32) * 0x9E3779B97F4A7C15u;
    return bits ^ bits >> 29;
}

class Chains {
    struct Slot {
        int64_t key;
        int64_t newest;  // -1: the slot is free
    };

    int64_t base = 0;    // number of the row that `keys` begins with
    int64_t first = 0;   // rows before this one are gone
    int64_t linked = 0;  // rows from this one on are not in the table yet
    std::vector<int64_t> keys;
    std::vector<uint8_t> valid;
    std::vector<int64_t> before;  // the row before with the same key, -1 if there is none
    std::vector<Slot> slots = std::vector<Slot>(64, Slot{0, -1});
    size_t used = 0;

    int64_t end() const { return base + static_cast<int64_t>(keys.size()); }

    Slot &slot(int64_t key) {
        size_t mask = slots.size() - 1, at = mixed(static_cast<uint64_t>(key)) & mask;
        while (slots[at].newest >= 0 && slots[at].key != key) at = (at + 1) & mask;
        return slots[at];
    }

    void enter(int64_t number) {
        size_t at = static_cast<size_t>(number - base);
        if (!valid[at]) return;
        Slot &mine = slot(keys[at]);
        before[at] = mine.newest;
        if (mine.newest < 0) {
            mine.key = keys[at];
            ++used;
        }
        mine.newest = number;
    }

    void link(int64_t to) {
        for (; linked < to; ++linked) {
            if (2 * (used + 1) > slots.size()) rebuild();
            enter(linked);
        }
    }

    // Makes the table anew, of the keys of live rows alone.
    void rebuild() {
        size_t distinct = 0;
        for (const Slot &one : slots) distinct += one.newest >= first;
        size_t size = 64;
        while (size < 4 * (distinct + 1)) size *= 2;
        std::vector<Slot> old(size, Slot{0, -1});
        old.swap(slots);
        used = 0;
        for (const Slot &one : old) {
            if (one.newest < first) continue;
            Slot &mine = slot(one.key);
            mine = one;
            ++used;
        }
    }

  public:
    PyObject *append(PyObject *args) {
        PyObject *keys_, *valid_;
        if (!PyArg_ParseTuple(args, "OO", &keys_, &valid_)) throw Raised();
        Ints more(keys_);
        Bytes there(valid_);
        there.want(more.size);
        keys.insert(keys.end(), more.data, more.data + more.size);
        if (there.data)
            valid.insert(valid.end(), there.data, there.data + more.size);
        else
            valid.insert(valid.end(), static_cast<size_t>(more.size), 1);
        before.resize(keys.size(), -1);
        Py_RETURN_NONE;
    }

    // Rows before this number are not asked for any more.
    PyObject *drop(PyObject *args) {
        long long to;
        if (!PyArg_ParseTuple(args, "L", &to)) throw Raised();
        first = std::max<int64_t>(first, to);
        if (first >= end()) {
            keys.clear();
            valid.clear();
            before.clear();
            base = first;
        }
        linked = std::max(linked, first);
        int64_t dead = first - base;
        if (2 * dead > static_cast<int64_t>(keys.size()) || keys.empty()) {
            keys.erase(keys.begin(), keys.begin() + dead);
            valid.erase(valid.begin(), valid.begin() + dead);
            before.erase(before.begin(), before.begin() + dead);
            base = first;
            rebuild();
        }
        Py_RETURN_NONE;
    }

    PyObject *probe(PyObject *args) {
        PyObject *keys_, *valid_;
        ProbeArguments a;
        if (!PyArg_ParseTuple(args, "OO" PROBES, &keys_, &valid_, &a.start, &a.low, &a.high,
                              &a.base, &a.rest, &a.who, &a.row))
            throw Raised();
        Ints wanted(keys_);
        Bytes there(valid_);
        Probes probes = a.open();
        wanted.want(probes.low.size);
        there.want(probes.low.size);
        probes.stored(first, end());
        return probes.run([&](int64_t i) {
            link(probes.high.data[i]);
            if (there.data && !there.data[i]) return;
            int64_t found = probes.filled, low = probes.low.data[i], high = probes.high.data[i];
            int64_t number = slot(wanted.data[i]).newest;
            for (; number >= low; number = before[static_cast<size_t>(number - base)])
                if (number < high && probes.fits(i, number)) probes.add(i, number);
            // The walk went from new to old.
            std::reverse(probes.row.data + found, probes.row.data + probes.filled);
        });
    }
};
