// Numbers each distinct string of bytes: texts, wide decimals, and keys of several columns.
#pragma once

#include "arrow.h"
#include "chains.h"

#include <cstring>
#include <utility>

inline uint64_t hash_of(const uint8_t *data, int64_t size) {
    uint64_t hash = static_cast<uint64_t>(size) * 0x9E3779B97F4A7C15u, part;
    for (; size >= 8; size -= 8, data += 8) {
        std::memcpy(&part, data, 8);
        hash = mixed(hash ^ part);
    }
    part = 0;
    if (size > 0) std::memcpy(&part, data, static_cast<size_t>(size));
    return mixed(hash ^ part);
}

class Codes {
    struct Slot {
        uint32_t hash;
        int32_t code;  // -1: the slot is free
    };
    std::vector<uint8_t> bytes;
    std::vector<int64_t> ends{0};
    std::vector<Slot> slots = std::vector<Slot>(64, Slot{0, -1});

    bool same(int32_t code, const uint8_t *data, int64_t size) const {
        int64_t from = ends[static_cast<size_t>(code)], to = ends[static_cast<size_t>(code) + 1];
        return to - from == size && (size == 0 || std::memcmp(&bytes[static_cast<size_t>(from)], data,
                                                              static_cast<size_t>(size)) == 0);
    }

    std::pair<int64_t, int64_t> range(int64_t code) const {
        if (code < 0 || code + 1 >= static_cast<int64_t>(ends.size()))
            throw std::out_of_range("a code of no text");
        return {ends[static_cast<size_t>(code)], ends[static_cast<size_t>(code) + 1]};
    }

    void grow() {
        slots.assign(2 * slots.size(), Slot{0, -1});
        for (size_t i = 0; i + 1 < ends.size(); ++i) {
            uint64_t whole = hash_of(bytes.data() + ends[i], ends[i + 1] - ends[i]);
            size_t mask = slots.size() - 1, at = whole & mask;
            while (slots[at].code >= 0) at = (at + 1) & mask;
            slots[at] = {static_cast<uint32_t>(whole >> 32), static_cast<int32_t>(i)};
        }
    }

  public:
    // Returns the slot of a string, a free one if the string is unknown.
    size_t place(uint64_t whole, const uint8_t *data, int64_t size) const {
        auto hash = static_cast<uint32_t>(whole >> 32);
        size_t mask = slots.size() - 1, at = whole & mask;
        while (slots[at].code >= 0 && !(slots[at].hash == hash && same(slots[at].code, data, size)))
            at = (at + 1) & mask;
        return at;
    }

    int64_t known(const uint8_t *data, int64_t size) const {
        return slots[place(hash_of(data, size), data, size)].code;
    }

    int64_t code(const uint8_t *data, int64_t size) {
        uint64_t whole = hash_of(data, size);
        size_t at = place(whole, data, size);
        if (slots[at].code >= 0) return slots[at].code;
        if (ends.size() > INT32_MAX) throw std::length_error("more than 2^31 distinct values");
        auto fresh = static_cast<int32_t>(ends.size() - 1);
        slots[at] = {static_cast<uint32_t>(whole >> 32), fresh};
        bytes.insert(bytes.end(), data, data + size);
        ends.push_back(static_cast<int64_t>(bytes.size()));
        if (2 * ends.size() > slots.size()) grow();
        return fresh;
    }

    // Returns whether a column contains a known text; adds none of its texts.
    PyObject *among(PyObject *args) {
        PyObject *column_;
        if (!PyArg_ParseTuple(args, "O", &column_)) throw Raised();
        Pieces pieces(column_);
        pieces.want("u");
        for (;;) {
            Held<ArrowArray> piece;
            if (!pieces.next(piece)) Py_RETURN_FALSE;
            Values column{piece};
            if (column.size() == 0) continue;
            const auto *ends = column.data<int32_t>();
            const auto *data = static_cast<const uint8_t *>(piece.buffers[2]);
            for (int64_t row = 0; row < column.size(); ++row)
                if (column.there(row) && known(data + ends[row], ends[row + 1] - ends[row]) >= 0)
                    Py_RETURN_TRUE;
        }
    }

    // Numbers values of `width` bytes each.
    PyObject *of_values(PyObject *args) {
        PyObject *data_, *out_;
        long long width;
        if (!PyArg_ParseTuple(args, "OLO", &data_, &width, &out_)) throw Raised();
        Bytes data(data_);
        Out out(out_, true);
        data.want(out.size * width);
        for (int64_t i = 0; i < out.size; ++i) out.data[i] = code(data.data + i * width, width);
        Py_RETURN_NONE;
    }

    // Returns the bytes of some codes, and writes their 64-bit `offsets`, one more than there are
    // codes.
    PyObject *texts(PyObject *args) {
        PyObject *codes_, *offsets_;
        if (!PyArg_ParseTuple(args, "OO", &codes_, &offsets_)) throw Raised();
        Ints codes(codes_);
        Out offsets(offsets_, true);
        offsets.want(codes.size + 1);
        std::vector<uint8_t> found;
        offsets.data[0] = 0;
        for (int64_t i = 0; i < codes.size; ++i) {
            add_text(codes.data[i], found);
            offsets.data[i + 1] = static_cast<int64_t>(found.size());
        }
        return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(found.data()),
                                         static_cast<Py_ssize_t>(found.size()));
    }

    // Adds the bytes of a text at the end.
    void add_text(int64_t code, std::vector<uint8_t> &to) const {
        auto [from, end] = range(code);
        to.insert(to.end(), bytes.begin() + from, bytes.begin() + end);
    }

    bool less(int64_t a, int64_t b) const {
        auto [from, to] = range(a);
        auto [low, high] = range(b);
        return std::lexicographical_compare(bytes.begin() + from, bytes.begin() + to,
                                            bytes.begin() + low, bytes.begin() + high);
    }

    int64_t size() const { return static_cast<int64_t>(ends.size()) - 1; }

    PyObject *count(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(size())); }
};
