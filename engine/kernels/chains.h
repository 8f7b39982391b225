// Rows by key: a hash table leads to the newest row of each key, and each row to the previous one.
//
// Windows are suffixes of the rows that have arrived, so a walk that starts at the newest row stops
// at the first row that is too old. A row enters the table only when a probe may meet it, so that
// probes that arrived earlier do not walk over it.
#pragma once

#include "numbered.h"

inline uint64_t mixed(uint64_t bits) {
    bits = (bits ^ bits >> 32) * 0x9E3779B97F4A7C15u;
    return bits ^ bits >> 29;
}

class Chains : public Numbered {
    struct Slot {
        int64_t key;
        int64_t newest;  // -1: the slot is free
    };

    int64_t linked = 0;  // rows from this one on are not in the table yet
    std::vector<int64_t> before;  // the previous row with the same key, -1 if there is none
    std::vector<Slot> slots = std::vector<Slot>(64, Slot{0, -1});
    size_t used = 0;

    Slot &slot(int64_t key) {
        size_t mask = slots.size() - 1, at = mixed(static_cast<uint64_t>(key)) & mask;
        while (slots[at].newest >= 0 && slots[at].key != key) at = (at + 1) & mask;
        return slots[at];
    }

    void enter(int64_t number) {
        size_t at = static_cast<size_t>(number - base);
        if (!valid[at]) return;
        Slot &mine = slot(values[at]);
        before[at] = mine.newest;
        if (mine.newest < 0) {
            mine.key = values[at];
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

    // Rebuilds the table from the keys of live rows only.
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
        add(args);
        before.resize(values.size(), -1);
        Py_RETURN_NONE;
    }

    PyObject *drop(PyObject *args) {
        bool all;
        int64_t dead = drop_before(args, all);
        linked = std::max(linked, first);
        before.erase(before.begin(), before.begin() + dead);
        if (dead > 0 || all) rebuild();
        Py_RETURN_NONE;
    }

    // Writes, for each key, the newest row before a number; -1 if there is none.
    PyObject *latest(PyObject *args) {
        PyObject *keys_, *valid_, *below_, *out_;
        if (!PyArg_ParseTuple(args, "OOOO", &keys_, &valid_, &below_, &out_)) throw Raised();
        Ints wanted(keys_), below(below_);
        Bytes there(valid_);
        Out out(out_, true);
        there.want(wanted.size);
        below.want(wanted.size);
        out.want(wanted.size);
        for (int64_t i = 0; i < wanted.size; ++i) {
            out.data[i] = -1;
            if (below.data[i] > end()) throw std::out_of_range("rows that are not stored");
            link(below.data[i]);
            if (there.data && !there.data[i]) continue;
            int64_t number = slot(wanted.data[i]).newest;
            while (number >= below.data[i]) number = before[static_cast<size_t>(number - base)];
            if (number >= first) out.data[i] = number;
        }
        Py_RETURN_NONE;
    }

    // Writes the previous row of the same key for each row from `from` on; -1 if there is none.
    PyObject *previous(PyObject *args) {
        long long from;
        PyObject *out_;
        if (!PyArg_ParseTuple(args, "LO", &from, &out_)) throw Raised();
        Out out(out_, true);
        if (from < first || from + out.size > end()) throw std::out_of_range("rows that are not stored");
        link(from + out.size);
        for (int64_t i = 0; i < out.size; ++i) {
            int64_t number = before[static_cast<size_t>(from - base + i)];
            out.data[i] = number >= first ? number : -1;
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
