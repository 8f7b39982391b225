// Rows by number: one value per row; rows before a certain number are gone.
#pragma once

#include "probes.h"

#include <algorithm>

class Numbered {
  protected:
    int64_t base = 0;   // the number of the first row in `values`
    int64_t first = 0;  // rows before this one are gone
    std::vector<int64_t> values;
    std::vector<uint8_t> valid;

    int64_t end() const { return base + static_cast<int64_t>(values.size()); }

    void add(PyObject *args) {
        PyObject *values_, *valid_;
        if (!PyArg_ParseTuple(args, "OO", &values_, &valid_)) throw Raised();
        Ints more(values_);
        Bytes there(valid_);
        there.want(more.size);
        values.insert(values.end(), more.data, more.data + more.size);
        if (there.data)
            valid.insert(valid.end(), there.data, there.data + more.size);
        else
            valid.insert(valid.end(), static_cast<size_t>(more.size), 1);
    }

    // Marks the rows before the number in `args` as no longer needed. Returns how many rows leave
    // memory: most of those, or none yet. `all` is set if no row is left.
    int64_t drop_before(PyObject *args, bool &all) {
        long long to;
        if (!PyArg_ParseTuple(args, "L", &to)) throw Raised();
        first = std::max<int64_t>(first, to);
        all = first >= end();
        int64_t dead = std::min(first, end()) - base;
        if (!all && 2 * dead <= static_cast<int64_t>(values.size())) return 0;
        values.erase(values.begin(), values.begin() + dead);
        valid.erase(valid.begin(), valid.begin() + dead);
        base = first;
        return dead;
    }
};
