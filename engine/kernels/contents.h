// Fingerprints rows in two words, which are the same for the same rows in any order and any split.
#pragma once

#include "arrow.h"
#include "codes.h"

#include <algorithm>
#include <type_traits>

class Contents {
    static constexpr int64_t AT_ONCE = 1024;
    static constexpr uint64_t BEGIN = 0xC2B2AE3D27D4EB4F, TIMES = 0x9E3779B97F4A7C15, NONE = 0xD6E8FEB86659FD93;

    uint64_t hashes[AT_ONCE]{};
    uint64_t first = 0, second = 0;
    int64_t rows = 0;

    // Mixes both halves of the product, so that the result depends on the column in which a value
    // stands.
    static uint64_t with(uint64_t hash, uint64_t value) {
        auto product = static_cast<unsigned __int128>(hash ^ value) * TIMES;
        return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }

    template <typename Value>
    void add(const Values &column, int64_t from, int64_t count, Value value) {
        if (column.whole()) {
            for (int64_t i = 0; i < count; ++i) hashes[i] = with(hashes[i], value(from + i));
            return;
        }
        for (int64_t i = 0; i < count; ++i)
            hashes[i] = with(hashes[i], column.there(from + i) ? value(from + i) : NONE);
    }

    template <typename T>
    void add_words(const Values &column, int64_t from, int64_t count) {
        const T *values = column.data<T>();
        add(column, from, count, [values](int64_t row) {
            return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(values[row]));
        });
    }

    void add_column(const char *format, const Values &column, int64_t from, int64_t count) {
        switch (format[0]) {
            case 'c': return add_words<int8_t>(column, from, count);
            case 's': return add_words<int16_t>(column, from, count);
            case 'i': case 'f': return add_words<int32_t>(column, from, count);
            case 'l': case 'g': return add_words<int64_t>(column, from, count);
            case 't':
                return short_time(format) ? add_words<int32_t>(column, from, count)
                                          : add_words<int64_t>(column, from, count);
            case 'b':
                return add(column, from, count, [&](int64_t row) -> uint64_t { return column.bit(1, row); });
            case 'd': {
                const auto *words = static_cast<const uint8_t *>(column.of.buffers[1]) + 16 * column.of.offset;
                return add(column, from, count, [words](int64_t row) { return hash_of(words + 16 * row, 16); });
            }
            case 'u': {
                const auto *ends = column.data<int32_t>();
                const auto *data = static_cast<const uint8_t *>(column.of.buffers[2]);
                return add(column, from, count, [ends, data](int64_t row) {
                    return hash_of(data + ends[row], ends[row + 1] - ends[row]);
                });
            }
            default: throw std::invalid_argument(std::string("no contents of Arrow's ") + format);
        }
    }

  public:
    void add_rows(const ArrowSchema &schema, const ArrowArray &piece) {
        for (int64_t from = 0; from < piece.length; from += AT_ONCE) {
            int64_t count = std::min(AT_ONCE, piece.length - from);
            std::fill_n(hashes, count, BEGIN);
            for (int64_t i = 0; i < piece.n_children; ++i)
                add_column(schema.children[i]->format, Values{*piece.children[i]}, piece.offset + from, count);
            for (int64_t i = 0; i < count; ++i) {
                first += mixed(mixed(hashes[i]));
                second += mixed(mixed(hashes[i] + TIMES));
            }
        }
        rows += piece.length;
    }

    PyObject *said() const {
        return Py_BuildValue("LKK", static_cast<long long>(rows), static_cast<unsigned long long>(first),
                             static_cast<unsigned long long>(second));
    }
};

// Returns the number of rows and the two sums of their hashes.
inline PyObject *contents(PyObject *args) {
    PyObject *rows_;
    if (!PyArg_ParseTuple(args, "O", &rows_)) throw Raised();
    Pieces pieces(rows_);
    Held<ArrowSchema> schema;
    pieces.describe(schema);
    Contents found;
    for (;;) {
        Held<ArrowArray> piece;
        if (!pieces.next(piece)) return found.said();
        found.add_rows(schema, piece);
    }
}
