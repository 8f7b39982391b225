// Rows by key: a hash table leads to the newest row of each key, and each row to the previous one.
//
// Windows are suffixes of the rows that have arrived, so a walk that starts at the newest row stops
// at the first row that is too old. A row enters the table only when a probe may meet it, so that
// probes that arrived earlier do not walk over it. Its key is kept until then; later the table has it.
#pragma once

#include "grown.h"
#include "probes.h"

#include <algorithm>
#include <utility>
#include <vector>

inline uint64_t mixed(uint64_t bits) {
    bits = (bits ^ bits >> 32) * 0x9E3779B97F4A7C15u;
    return bits ^ bits >> 29;
}

// A hash table from keys to the newest row of each, counted from some row on.
template <typename Key>
class NewestRows {
#pragma pack(push, 4)
    struct Slot {
        Key key;
        uint32_t newest;  // 0: the slot is free
    };
#pragma pack(pop)
    static constexpr size_t SMALL = size_t{1} << 16;  // slots

    std::vector<Slot> slots = std::vector<Slot>(64, Slot{0, 0});
    size_t used = 0, most = 32;  // slots in use, and from how many on the table is built anew

    Slot &slot(Key key) {
        size_t at = (mixed(static_cast<uint64_t>(static_cast<int64_t>(key))) >> 32) * slots.size() >> 32;
        while (slots[at].newest && slots[at].key != key)
            if (++at == slots.size()) at = 0;
        return slots[at];
    }

  public:
    static bool holds(int64_t key) { return static_cast<Key>(key) == key; }

    size_t size() const { return slots.size(); }
    size_t count() const { return used; }
    bool full() const { return used + 1 > most; }

    // Returns the newest row of a key, 0 if there is none.
    uint32_t newest(Key key) { return slot(key).newest; }

    // Notes the newest row of a key; returns the one before it, 0 if there was none.
    uint32_t note(Key key, uint32_t row) {
        Slot &mine = slot(key);
        used += mine.newest == 0;
        mine.key = key;
        return std::exchange(mine.newest, row);
    }

    // Returns a table of the keys of rows from `base` on. Rows are counted from `start` here, from `origin` there.
    // A small table has room for many more keys, so that this is rare; a large one is as small as it can be without
    // long searches.
    template <typename Other>
    NewestRows<Other> rebuilt(int64_t start, int64_t base, int64_t origin) const {
        auto lives = [&](const Slot &one) { return one.newest && start + one.newest >= base; };
        auto distinct = 1 + static_cast<size_t>(std::count_if(slots.begin(), slots.end(), lives));
        NewestRows<Other> made;
        made.make(distinct);
        for (const Slot &one : slots)
            if (lives(one)) made.note(one.key, static_cast<uint32_t>(start + one.newest - origin));
        return made;
    }

    void make(size_t distinct) {
        size_t size = std::max<size_t>(64, distinct < SMALL / 8 ? 6 * distinct : 9 * distinct / 4);
        slots.assign(size, Slot{0, 0});
        used = 0;
        most = distinct < SMALL / 8 ? size / 2 : 7 * size / 10;
    }
};

class Chains {
    int64_t base = 0;    // rows before this one are gone
    int64_t linked = 0;  // rows from this one on are not in the table yet
    Grown<uint32_t> back;  // how far before a row the previous one with its key is; 0 if there is none
    Grown<int64_t> keys;   // of the rows that are not in the table
    Grown<uint8_t> valid;  // 0 for those of them that have no key
    NewestRows<int32_t> narrow;  // while all keys have 32 bits, then `wide`
    NewestRows<int64_t> wide;
    bool is_wide = false;
    int64_t origin = -1;  // rows in the table are counted from here
    size_t gone = 0;      // rows dropped since the table was built

    int64_t end() const { return base + back.size(); }

    // Returns the newest row of a key: a row that is gone, or -1, if there is none.
    int64_t newest(int64_t key) {
        if (!is_wide && !narrow.holds(key)) return -1;
        uint32_t found = is_wide ? wide.newest(key) : narrow.newest(static_cast<int32_t>(key));
        return found ? origin + found : -1;
    }

    // Returns the row before one with the same key: a row that is gone, or -1, if there is none.
    int64_t before(int64_t number) const {
        uint32_t by = back.data()[number - base];
        return by ? number - by : -1;
    }

    void enter(int64_t number, int64_t key) {
        if (number - origin > UINT32_MAX) rebuild();
        if (!is_wide && !narrow.holds(key)) {
            wide = narrow.rebuilt<int64_t>(origin, base, origin);
            narrow = NewestRows<int32_t>();
            is_wide = true;
        }
        auto row = static_cast<uint32_t>(number - origin);
        uint32_t last = is_wide ? wide.note(key, row) : narrow.note(static_cast<int32_t>(key), row);
        if (last && origin + last >= base) back.data()[number - base] = row - last;
    }

    void link(int64_t to) {
        if (linked >= to) return;
        const int64_t from = linked;
        for (; linked < to; ++linked) {
            if (is_wide ? wide.full() : narrow.full()) rebuild();
            if (valid.data()[linked - from]) enter(linked, keys.data()[linked - from]);
        }
        keys.drop(to - from);
        valid.drop(to - from);
    }

    // Rebuilds the table from the keys of live rows only.
    void rebuild() {
        const int64_t start = std::exchange(origin, base - 1);
        if (is_wide)
            wide = wide.rebuilt<int64_t>(start, base, origin);
        else
            narrow = narrow.rebuilt<int32_t>(start, base, origin);
        gone = 0;
    }

  public:
    PyObject *append(PyObject *args) {
        PyObject *keys_, *valid_;
        if (!PyArg_ParseTuple(args, "OO", &keys_, &valid_)) throw Raised();
        Ints more(keys_);
        Bytes there(valid_);
        there.want(more.size);
        if (back.size() + more.size >= UINT32_MAX) throw std::length_error("a window of 2^32 rows");
        keys.add(more.data, more.size);
        if (there.data)
            valid.add(there.data, more.size);
        else
            valid.add(more.size, 1);
        back.room(more.size);
        Py_RETURN_NONE;
    }

    PyObject *drop(PyObject *args) {
        long long to;
        if (!PyArg_ParseTuple(args, "L", &to)) throw Raised();
        if (to <= base) Py_RETURN_NONE;
        const int64_t waiting = std::max<int64_t>(0, std::min<int64_t>(to, end()) - linked);
        const int64_t dead = std::min<int64_t>(to, end()) - base;
        keys.drop(waiting);
        valid.drop(waiting);
        back.drop(dead);
        base = to;
        linked = std::max(linked, base);
        gone += static_cast<size_t>(dead);
        if (gone > (is_wide ? wide.size() : narrow.size()) || (back.size() == 0 && wide.count() + narrow.count() > 0))
            rebuild();
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
            int64_t number = newest(wanted.data[i]);
            while (number >= base && number >= below.data[i]) number = before(number);
            if (number >= base) out.data[i] = number;
        }
        Py_RETURN_NONE;
    }

    // Writes the previous row of the same key for each row from `from` on; -1 if there is none.
    PyObject *previous(PyObject *args) {
        long long from;
        PyObject *out_;
        if (!PyArg_ParseTuple(args, "LO", &from, &out_)) throw Raised();
        Out out(out_, true);
        if (from < base || from + out.size > end()) throw std::out_of_range("rows that are not stored");
        link(from + out.size);
        for (int64_t i = 0; i < out.size; ++i) {
            int64_t number = before(from + i);
            out.data[i] = number >= base ? number : -1;
        }
        Py_RETURN_NONE;
    }

    PyObject *probe(PyObject *args) {
        PyObject *keys_, *valid_;
        ProbeArguments a;
        if (!PyArg_ParseTuple(args, "OO" PROBES, &keys_, &valid_, &a.start, &a.low, &a.high,
                              &a.base, &a.rest, &a.who, &a.row, &a.formulas))
            throw Raised();
        Ints wanted(keys_);
        Bytes there(valid_);
        Probes probes = a.open();
        wanted.want(probes.low.size);
        there.want(probes.low.size);
        probes.stored(base, end());
        return probes.run([&](int64_t i) {
            link(probes.high.data[i]);
            if (there.data && !there.data[i]) return;
            int64_t found = probes.filled, low = probes.low.data[i], high = probes.high.data[i];
            int64_t number = newest(wanted.data[i]);
            for (; number >= low; number = before(number))
                if (number < high && probes.fits(i, number)) probes.add(i, number);
            // The walk went from new to old.
            std::reverse(probes.row.data + found, probes.row.data + probes.filled);
        });
    }
};
