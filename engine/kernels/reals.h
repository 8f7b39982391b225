// Columns of reals.
#pragma once

#include "binding.h"

template <typename Real>
bool all_real(const uint8_t *data, int64_t offset, int64_t count) {
    const Real *values = reinterpret_cast<const Real *>(data) + offset;
    bool found = true;
    for (int64_t i = 0; i < count; ++i) found &= values[i] == values[i];
    return found;
}

// Returns whether none of the values in a range of a buffer is NaN.
inline PyObject *real(PyObject *args) {
    PyObject *data_;
    long long offset, count, width;
    if (!PyArg_ParseTuple(args, "OLLL", &data_, &offset, &count, &width)) throw Raised();
    Bytes data(data_);
    if (offset < 0 || count < 0 || (width != 4 && width != 8)) throw std::out_of_range("no such values");
    data.want((offset + count) * width);
    if (data.data == nullptr && count > 0) throw std::out_of_range("values without a buffer");
    bool found = width == 4 ? all_real<float>(data.data, offset, count)
                            : all_real<double>(data.data, offset, count);
    return PyBool_FromLong(found);
}
