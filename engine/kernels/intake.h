// Checks incoming rows: whether all of them may stay as they are, and their times.
#pragma once

#include "arrow.h"
#include "reals.h"

#include <algorithm>
#include <limits>

// Returns whether no text has more than `most` characters.
inline bool short_enough(const Values &texts, int64_t most) {
    const auto *ends = texts.data<int32_t>();
    const auto *data = static_cast<const uint8_t *>(texts.of.buffers[2]);
    for (int64_t row = 0; row < texts.size(); ++row) {
        int64_t from = ends[row], to = ends[row + 1];
        if (to - from <= most || !texts.there(row)) continue;
        auto begins = [](uint8_t byte) { return (byte & 0xC0) != 0x80; };
        if (std::count_if(data + from, data + to, begins) > most) return false;
    }
    return true;
}

// The first and the last time of rows, and whether the times never decrease.
struct TimesOf {
    int64_t first = 0, last = INT64_MIN;
    bool any = false, ordered = true;

    void add(const Values &column) {
        if (column.size() == 0) return;
        const auto *ts = column.data<int64_t>();
        if (!any) first = ts[0];
        any = true;
        ordered = ordered && ts[0] >= last && std::is_sorted(ts, ts + column.size());
        last = ts[column.size() - 1];
    }

    PyObject *handed() const {
        return Py_BuildValue("LLO", static_cast<long long>(first), static_cast<long long>(last),
                             ordered ? Py_True : Py_False);
    }
};

// Returns whether all values are from `low` to `high`.
template <class Number> bool within(const Values &numbers, int64_t low, int64_t high) {
    const auto *data = numbers.data<Number>();
    Number least = std::numeric_limits<Number>::max(), most = std::numeric_limits<Number>::min();
    for (int64_t row = 0; row < numbers.size(); ++row) {
        least = std::min(least, data[row]);
        most = std::max(most, data[row]);
    }
    if (least >= low && most <= high) return true;
    for (int64_t row = 0; row < numbers.size(); ++row) // what is at a NULL does not count
        if (numbers.there(row) && (data[row] < low || data[row] > high)) return false;
    return true;
}

// Returns rows as one piece if no column has a NaN, a NULL where none is allowed, too long a text or
// a time out of range: the capsule of Arrow's array, its address, and the times of its first column,
// None without rows. Otherwise returns None. `wants` has six numbers per check: the column, the bytes
// of a number that is checked or 0, whether NULL is refused, the maximum number of characters or -1,
// and the range, which is empty for reals. The first column has the times.
inline PyObject *sound(PyObject *args) {
    PyObject *rows_, *wants_;
    if (!PyArg_ParseTuple(args, "OO", &rows_, &wants_)) throw Raised();
    Ints wants(wants_);
    Pieces pieces(rows_);
    Held<ArrowArray> rows, more;
    if (!pieces.next(rows) || pieces.next(more)) Py_RETURN_NONE;
    for (int64_t i = 0; i + 6 <= wants.size; i += 6) {
        const int64_t *want = wants.data + i;
        if (want[0] < 0 || want[0] >= rows.n_children) throw std::out_of_range("there is no such column");
        Values column{*rows.children[want[0]]};
        if (column.size() == 0) continue;
        const auto *bytes = static_cast<const uint8_t *>(column.of.buffers[1]);
        bool good = true;
        if (want[1] != 0 && want[4] > want[5])
            good = want[1] == 4 ? all_real<float>(bytes, column.of.offset, column.size())
                                : all_real<double>(bytes, column.of.offset, column.size());
        else if (want[1] != 0)
            good = want[1] == 4 ? within<int32_t>(column, want[4], want[5])
                                : within<int64_t>(column, want[4], want[5]);
        good = good && (want[2] == 0 || column.whole());
        if (!good || (want[3] >= 0 && !short_enough(column, want[3]))) Py_RETURN_NONE;
    }
    TimesOf times;
    if (rows.n_children > 0) times.add(Values{*rows.children[0]});
    PyObject *found = times.any ? times.handed() : Py_NewRef(Py_None);
    auto *moved = new ArrowArray(rows);
    rows.release = nullptr;
    return Py_BuildValue("NKN", wrapped(moved), reinterpret_cast<unsigned long long>(moved), found);
}

// Flags the times of a column that are late: more than `slack` behind the highest before them, of which `highest`
// is the first, or before `least`. Returns the highest then, and how many are late.
inline PyObject *late(PyObject *args) {
    PyObject *column_, *flags_;
    long long highest, least;
    unsigned long long slack;
    if (!PyArg_ParseTuple(args, "OLKLO", &column_, &highest, &slack, &least, &flags_)) throw Raised();
    Pieces pieces(column_);
    pieces.want("l");
    View<uint8_t> flags(flags_, true);
    int64_t at = 0, count = 0;
    for (Held<ArrowArray> piece; pieces.next(piece);) {
        Values column{piece};
        flags.want(at + column.size());
        const auto *ts = column.data<int64_t>();
        for (int64_t row = 0; row < column.size(); ++row, ++at) {
            // The distance of any two times fits into 64 unsigned bits.
            bool behind = ts[row] < highest && static_cast<uint64_t>(highest) - static_cast<uint64_t>(ts[row]) > slack;
            flags.data[at] = behind || ts[row] < least;
            count += flags.data[at];
            highest = std::max<int64_t>(highest, ts[row]);
        }
        piece.release(&piece);
        piece.release = nullptr;
    }
    return Py_BuildValue("LL", static_cast<long long>(highest), static_cast<long long>(count));
}

// Returns the times of a column.
inline PyObject *times(PyObject *args) {
    PyObject *column_;
    if (!PyArg_ParseTuple(args, "O", &column_)) throw Raised();
    Pieces pieces(column_);
    pieces.want("l");
    TimesOf found;
    for (;;) {
        Held<ArrowArray> piece;
        if (!pieces.next(piece)) break;
        found.add(Values{piece});
    }
    if (!found.any) throw std::out_of_range("no rows");
    return found.handed();
}
