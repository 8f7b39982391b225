// The latest rows with each key: SELECT DISTINCT within a window, and windows of the last rows of each
// partition.
#pragma once

#include "binding.h"

// Sets the flags of rows that come more than `reach` after the last row with their key whose flag is
// set; `last` has its clock. Keys from `known` on are new, numbered as they come. Returns how many.
inline PyObject *apart(PyObject *args) {
    PyObject *keys_, *clock_, *last_, *flags_;
    unsigned long long reach;
    long long known;
    if (!PyArg_ParseTuple(args, "OOKOLO", &keys_, &clock_, &reach, &last_, &known, &flags_))
        throw Raised();
    Ints keys(keys_), clock(clock_);
    Out last(last_, true);
    View<uint8_t> flags(flags_, true);
    clock.want(keys.size);
    flags.want(keys.size);
    long long found = 0;
    for (int64_t i = 0; i < keys.size; ++i) {
        int64_t key = keys.data[i];
        if (key < 0 || key >= last.size || key > known) throw std::out_of_range("a key that is not there");
        int64_t &before = last.data[key];
        // The distance of any two times fits 64 unsigned bits.
        flags.data[i] =
            key == known || static_cast<uint64_t>(clock.data[i]) - static_cast<uint64_t>(before) > reach;
        if (!flags.data[i]) continue;
        if (key == known) ++known;
        before = clock.data[i];
        ++found;
    }
    return PyLong_FromLongLong(found);
}

class LastOfKeys {
    struct Node {
        int64_t number;
        int32_t next;
    };
    struct Key {
        int32_t oldest = -1, newest = -1;
        int64_t count = 0;
    };
    int64_t size = 1;
    std::vector<Node> nodes;
    std::vector<Key> keys;

  public:
    // Takes the number of rows that each key keeps.
    PyObject *configure(PyObject *args) {
        long long size_;
        if (!PyArg_ParseTuple(args, "L", &size_)) throw Raised();
        if (size_ < 1) throw std::out_of_range("no rows");
        size = size_;
        Py_RETURN_NONE;
    }

    // Takes the next rows, with their keys and numbers. Writes the number of the row that each pushes
    // out, or -1.
    PyObject *add(PyObject *args) {
        PyObject *keys_, *numbers_, *out_;
        if (!PyArg_ParseTuple(args, "OOO", &keys_, &numbers_, &out_)) throw Raised();
        Ints given(keys_), numbers(numbers_);
        Out out(out_, true);
        numbers.want(given.size);
        out.want(given.size);
        for (int64_t i = 0; i < given.size; ++i) {
            if (given.data[i] < 0 || given.data[i] > INT32_MAX) throw std::out_of_range("a key below 0");
            auto key = static_cast<size_t>(given.data[i]);
            if (key >= keys.size()) keys.resize(key + 1);
            Key &own = keys[key];
            out.data[i] = -1;
            int32_t place;
            if (own.count == size) {  // its oldest row makes room
                place = own.oldest;
                out.data[i] = nodes[static_cast<size_t>(place)].number;
                own.oldest = nodes[static_cast<size_t>(place)].next;
            } else {
                if (nodes.size() >= INT32_MAX) throw std::length_error("more than 2^31 rows in windows");
                place = static_cast<int32_t>(nodes.size());
                nodes.push_back({0, -1});
                ++own.count;
            }
            Node &node = nodes[static_cast<size_t>(place)];
            if (own.count > 1)
                nodes[static_cast<size_t>(own.newest)].next = place;
            else
                own.oldest = place;
            node = {numbers.data[i], -1};
            own.newest = place;
        }
        Py_RETURN_NONE;
    }

    PyObject *count(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(nodes.size())); }

    // Writes the key and the number of each row, those of one key after the other.
    PyObject *held(PyObject *args) {
        PyObject *keys_, *numbers_;
        if (!PyArg_ParseTuple(args, "OO", &keys_, &numbers_)) throw Raised();
        Out found(keys_, true), numbers(numbers_, true);
        found.want(static_cast<int64_t>(nodes.size()));
        numbers.want(static_cast<int64_t>(nodes.size()));
        int64_t at = 0;
        for (size_t key = 0; key < keys.size(); ++key) {
            int32_t place = keys[key].oldest;
            for (int64_t i = 0; i < keys[key].count; ++i) {
                found.data[at] = static_cast<int64_t>(key);
                numbers.data[at++] = nodes[static_cast<size_t>(place)].number;
                place = nodes[static_cast<size_t>(place)].next;
            }
        }
        Py_RETURN_NONE;
    }
};
