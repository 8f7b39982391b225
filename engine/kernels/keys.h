// Numbers the distinct combinations of values of some columns, and gives the values back.
#pragma once

#include "column.h"
#include "numbers.h"

class Keys {
    Codes codes;
    std::vector<Column> columns;

  public:
    // Takes the types of the columns.
    PyObject *configure(PyObject *args) {
        PyObject *types_;
        if (!PyArg_ParseTuple(args, "O", &types_)) throw Raised();
        columns.clear();
        for (const std::string &format : formats(types_)) columns.emplace_back().become(format);
        Py_RETURN_NONE;
    }

    int64_t size() const { return codes.size(); }

    // Writes the number of the combination in each of `count` rows. NULL is a value like any other.
    void number(const std::vector<Given> &rows, int64_t count, int64_t *out) {
        if (rows.size() != columns.size()) throw std::invalid_argument("keys of other columns");
        std::vector<KeyBytes> parts;
        for (const Given &one : rows) parts.emplace_back(*one.schema, *one.array);
        number_rows(parts, codes, count, out, [&](int64_t row) {
            for (size_t i = 0; i < rows.size(); ++i) columns[i].append(rows[i], row, 1);
        });
    }

    PyObject *numbers(PyObject *args) {
        PyObject *rows_, *out_;
        if (!PyArg_ParseTuple(args, "OO", &rows_, &out_)) throw Raised();
        Out out(out_, true);
        number(given(rows_), out.size, out.data);
        Py_RETURN_NONE;
    }

    // Returns a column's values of some combinations.
    PyObject *take(PyObject *args) {
        PyObject *places_;
        int column;
        if (!PyArg_ParseTuple(args, "iO", &column, &places_)) throw Raised();
        Ints places(places_);
        if (column < 0 || static_cast<size_t>(column) >= columns.size())
            throw std::out_of_range("there is no such column");
        return handed_over(new ArrowArray(columns[static_cast<size_t>(column)].take(places.data, places.size)));
    }

    PyObject *count(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(size())); }
};
