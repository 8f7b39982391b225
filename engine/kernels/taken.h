// Takes some rows of a column, as a column of Arrow's.
#pragma once

#include "arrow.h"

#include <algorithm>
#include <memory>
#include <vector>

// Row numbers of 32 or 64 bits.
class Places {
    Py_buffer buffer{};

  public:
    int64_t size = 0;

    explicit Places(PyObject *array) {
        if (PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS) != 0) throw Raised();
        if (buffer.itemsize != 4 && buffer.itemsize != 8) {
            PyBuffer_Release(&buffer);
            throw std::invalid_argument("places of another size than 4 or 8 bytes");
        }
        size = buffer.len / buffer.itemsize;
    }
    Places(const Places &) = delete;
    Places &operator=(const Places &) = delete;
    ~Places() { PyBuffer_Release(&buffer); }

    template <typename Visit>
    void each(Visit visit) const {
        if (buffer.itemsize == 4) visit(static_cast<const int32_t *>(buffer.buf));
        else visit(static_cast<const int64_t *>(buffer.buf));
    }
};

// The buffers of a column that is built here. Arrow requires a buffer even if it is empty.
struct Made {
    std::unique_ptr<uint8_t[]> own[3];
    const void *buffers[3] = {nullptr, nullptr, nullptr};

    template <typename T>
    T *room(size_t number, int64_t count, bool zeros = false) {
        auto bytes = static_cast<size_t>(count) * sizeof(T) + 8;
        own[number].reset(zeros ? new uint8_t[bytes]() : new uint8_t[bytes]);
        buffers[number] = own[number].get();
        return reinterpret_cast<T *>(own[number].get());
    }

    static void release(ArrowArray *array) {
        delete static_cast<Made *>(array->private_data);
        array->release = nullptr;
    }
};

// Gathers rows from the pieces of one column, which follow one another.
class Gather {
    std::vector<Values> pieces;
    std::vector<int64_t> starts;
    const Places &places;
    std::unique_ptr<Made> made = std::make_unique<Made>();

    // Returns the piece that contains a row.
    size_t piece(int64_t row) const {
        return static_cast<size_t>(std::upper_bound(starts.begin() + 1, starts.end(), row) -
                                   starts.begin()) - 1;
    }

    template <typename Body>
    void each(Body body) const {
        places.each([&](const auto *rows) {
            if (pieces.size() == 1) {
                const Values &whole = pieces[0];
                for (int64_t i = 0; i < places.size; ++i)
                    body(i, whole, static_cast<int64_t>(rows[i]));
                return;
            }
            for (int64_t i = 0; i < places.size; ++i) {
                size_t own = piece(rows[i]);
                body(i, pieces[own], rows[i] - starts[own]);
            }
        });
    }

    void bits(size_t buffer) {
        auto *out = made->room<uint8_t>(buffer, places.size / 8 + 1, true);
        each([&](int64_t i, const Values &column, int64_t row) {
            bool bit = buffer == 0 ? column.there(row) : column.bit(buffer, row);
            out[i >> 3] = static_cast<uint8_t>(out[i >> 3] | bit << (i & 7));
        });
    }

    struct Wide {
        int64_t low, high;
    };

    template <typename T>
    void fixed() {
        T *out = made->room<T>(1, places.size);
        each([&](int64_t i, const Values &column, int64_t row) { out[i] = column.data<T>()[row]; });
    }

    void texts() {
        auto *begins = made->room<int32_t>(1, places.size + 1);
        int64_t size = 0;
        each([&](int64_t i, const Values &column, int64_t row) {
            const auto *ends = column.data<int32_t>() + row;
            begins[i] = static_cast<int32_t>(size);
            size += ends[1] - ends[0];
        });
        if (size > INT32_MAX) throw std::length_error("more than 2^31 bytes of text");
        begins[places.size] = static_cast<int32_t>(size);
        auto *out = made->room<uint8_t>(2, size);
        each([&](int64_t i, const Values &column, int64_t row) {
            const auto *ends = column.data<int32_t>() + row;
            auto bytes = static_cast<size_t>(ends[1] - ends[0]);
            const auto *data = static_cast<const uint8_t *>(column.of.buffers[2]);
            if (bytes > 0) std::memcpy(out + begins[i], data + ends[0], bytes);
        });
    }

    // Returns false for a format that is not supported here.
    bool values(const char *format) {
        switch (format[0]) {
            case 'b': bits(1); return true;
            case 'c': fixed<int8_t>(); return true;
            case 's': fixed<int16_t>(); return true;
            case 'i': case 'f': fixed<int32_t>(); return true;
            case 'l': case 'g': fixed<int64_t>(); return true;
            case 'd': if (std::strchr(format, ',') != std::strrchr(format, ',')) return false;
                fixed<Wide>(); return true;
            case 'u': texts(); return true;
            case 't': short_time(format) ? fixed<int32_t>() : fixed<int64_t>(); return true;
            default: return false;
        }
    }

  public:
    Gather(std::vector<Values> of, const Places &places) : pieces(std::move(of)), places(places) {
        starts.push_back(0);
        for (const Values &piece : pieces) starts.push_back(starts.back() + piece.size());
    }

    PyObject *run(const char *format) {
        int64_t count = starts.back(), nulls = 0;
        bool inside = !pieces.empty(), whole = true;
        places.each([&](const auto *rows) {
            for (int64_t i = 0; i < places.size; ++i) inside &= rows[i] >= 0 && rows[i] < count;
        });
        if (!inside) throw std::out_of_range("a row that is not there");
        if (!values(format)) Py_RETURN_NONE;
        for (const Values &piece : pieces) whole = whole && piece.whole();
        if (!whole) {
            bits(0);
            each([&](int64_t, const Values &own, int64_t row) { nulls += !own.there(row); });
        }
        auto *array = new ArrowArray{places.size, nulls, 0, format[0] == 'u' ? 3 : 2, 0,
                                     made->buffers, nullptr, nullptr, Made::release, made.get()};
        made.release();
        return handed_over(array);
    }
};

// Takes some rows of a column, each of whose pieces is the two capsules of an Arrow array. Returns
// the array capsule of these rows, or None if such values cannot be taken here.
inline PyObject *taken(PyObject *args) {
    PyObject *pieces_, *places_;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &pieces_, &places_)) throw Raised();
    Places places(places_);
    const ArrowSchema *schema = nullptr;
    std::vector<Values> pieces;
    for (Py_ssize_t i = 0; i < PyTuple_Size(pieces_); ++i) {
        PyObject *schema_, *column;
        if (!PyArg_ParseTuple(PyTuple_GetItem(pieces_, i), "OO", &schema_, &column)) throw Raised();
        const auto &own = unwrapped<ArrowSchema>(schema_, "arrow_schema");
        if (own.dictionary != nullptr) Py_RETURN_NONE;
        if (schema != nullptr && std::strcmp(schema->format, own.format) != 0)
            throw std::invalid_argument("pieces of several types");
        schema = &own;
        pieces.push_back(Values{unwrapped<ArrowArray>(column, "arrow_array")});
    }
    if (schema == nullptr) throw std::invalid_argument("a column of no piece");
    return Gather(std::move(pieces), places).run(schema->format);
}
