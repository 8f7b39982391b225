// Columns as passed by Arrow's C data interface:
// https://arrow.apache.org/docs/format/CDataInterface.html
#pragma once

#include "binding.h"

#include <cstring>
#include <string>
#include <vector>

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    ArrowSchema **children, *dictionary;
    void (*release)(ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    ArrowArray **children, *dictionary;
    void (*release)(ArrowArray *);
    void *private_data;
};

// Wraps an array on its way to Python in the capsule that owns it.
inline PyObject *wrapped(ArrowArray *array) {
    PyObject *capsule = PyCapsule_New(array, "arrow_array", [](PyObject *self) {
        auto *own = static_cast<ArrowArray *>(PyCapsule_GetPointer(self, "arrow_array"));
        if (own == nullptr) return;
        if (own->release != nullptr) own->release(own);
        delete own;
    });
    if (capsule != nullptr) return capsule;
    if (array->release != nullptr) array->release(array);
    delete array;
    throw Raised();
}

// Hands an array to Python: the capsule that owns it, and its address, from which Arrow imports it.
inline PyObject *handed_over(ArrowArray *array) {
    auto address = reinterpret_cast<unsigned long long>(array);
    return Py_BuildValue("NK", wrapped(array), address);
}

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream *, ArrowSchema *);
    int (*get_next)(ArrowArrayStream *, ArrowArray *);
    const char *(*get_last_error)(ArrowArrayStream *);
    void (*release)(ArrowArrayStream *);
    void *private_data;
};

// Returns the content of a capsule. The capsule keeps ownership and releases the content itself.
template <typename T>
T &unwrapped(PyObject *capsule, const char *name) {
    auto *inside = static_cast<T *>(PyCapsule_GetPointer(capsule, name));
    if (inside == nullptr) throw Raised();
    return *inside;
}

// An array or schema that a stream returned; releases it at the end of its scope.
template <typename T>
struct Held : T {
    Held() : T{} {}
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
    ~Held() {
        if (this->release != nullptr) this->release(this);
    }
};

// The pieces of a table or a column, one after the other.
class Pieces {
    ArrowArrayStream &stream;

    void done(int code) const {
        if (code == 0) return;
        const char *why = stream.get_last_error(&stream);
        throw std::runtime_error(why == nullptr ? "no more pieces" : why);
    }

  public:
    explicit Pieces(PyObject *capsule)
        : stream(unwrapped<ArrowArrayStream>(capsule, "arrow_array_stream")) {
        if (stream.release == nullptr) throw std::invalid_argument("a stream that was read");
    }

    // Fetches the next piece; returns whether there was one.
    bool next(Held<ArrowArray> &piece) const {
        done(stream.get_next(&stream, &piece));
        return piece.release != nullptr;
    }

    void describe(Held<ArrowSchema> &schema) const { done(stream.get_schema(&stream, &schema)); }

    void want(const char *format) const {
        Held<ArrowSchema> schema;
        describe(schema);
        if (std::strcmp(schema.format, format) != 0)
            throw std::invalid_argument(std::string("a column of ") + schema.format + ": want " + format);
    }
};

// Days, seconds and milliseconds of a day have 32 bits; all other times have 64.
inline bool short_time(const char *format) {
    return std::strcmp(format, "tdD") == 0 || std::strcmp(format, "tts") == 0 ||
           std::strcmp(format, "ttm") == 0;
}

// One column: its values and their validity.
struct Values {
    const ArrowArray &of;

    int64_t size() const { return of.length; }

    template <typename T>
    const T *data(size_t buffer = 1) const {
        return static_cast<const T *>(of.buffers[buffer]) + of.offset;
    }

    bool bit(size_t buffer, int64_t row) const {
        int64_t at = of.offset + row;
        return static_cast<const uint8_t *>(of.buffers[buffer])[at >> 3] >> (at & 7) & 1;
    }

    bool there(int64_t row) const { return of.buffers[0] == nullptr || bit(0, row); }

    bool whole() const {
        if (of.null_count == 0 || of.buffers[0] == nullptr) return true;
        if (of.null_count > 0) return false;
        for (int64_t row = 0; row < of.length; ++row)
            if (!bit(0, row)) return false;
        return true;
    }
};

// The schema and the array of a column, as Arrow's two capsules hold them.
struct Given {
    const ArrowSchema *schema;
    const ArrowArray *array;

    Values values() const { return Values{*array}; }
};

// Returns columns that are passed as a tuple of pairs of capsules.
inline std::vector<Given> given(PyObject *columns) {
    std::vector<Given> found;
    if (!PyTuple_Check(columns)) throw std::invalid_argument("columns that are no tuple");
    for (Py_ssize_t i = 0; i < PyTuple_Size(columns); ++i) {
        PyObject *schema, *array;
        if (!PyArg_ParseTuple(PyTuple_GetItem(columns, i), "OO", &schema, &array)) throw Raised();
        found.push_back({&unwrapped<ArrowSchema>(schema, "arrow_schema"),
                         &unwrapped<ArrowArray>(array, "arrow_array")});
    }
    return found;
}
