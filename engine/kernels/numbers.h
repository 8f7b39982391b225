// Columns as the numbers that kernels compare.
#pragma once

#include "arrow.h"
#include "codes.h"

#include <cstdlib>
#include <type_traits>
#include <vector>

// Maps doubles to integers in the same order; -0.0 becomes 0.0.
inline int64_t of_double(double value) {
    value += 0.0;
    int64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

template <typename T>
void copied(const Values &column, int64_t *out) {
    const T *values = column.data<T>();
    for (int64_t row = 0; row < column.size(); ++row)
        out[row] = std::is_floating_point_v<T> ? of_double(static_cast<double>(values[row]))
                                               : static_cast<int64_t>(values[row]);
}

inline void coded_texts(const Values &column, Codes &codes, int64_t *out) {
    const auto *ends = column.data<int32_t>();
    const auto *data = static_cast<const uint8_t *>(column.of.buffers[2]);
    for (int64_t row = 0; row < column.size(); ++row)
        out[row] = column.there(row) ? codes.code(data + ends[row], ends[row + 1] - ends[row]) : 0;
}

// Reads 16-byte decimals: as they are if 64 bits hold them, otherwise as codes.
inline void decimals(const Values &column, bool narrow, Codes &codes, int64_t *out) {
    const auto *words = static_cast<const uint8_t *>(column.of.buffers[1]) + 16 * column.of.offset;
    for (int64_t row = 0; row < column.size(); ++row, words += 16) {
        if (narrow) std::memcpy(out + row, words, 8);
        else out[row] = column.there(row) ? codes.code(words, 16) : 0;
    }
}

// Writes the bytes that stand for a column's value in a key: a zero for NULL, otherwise a one and
// the value, so that keys differ whenever a value does. Texts are preceded by their length.
class KeyBytes {
    Values column;
    const char *format;

    template <typename T>
    void add(std::vector<uint8_t> &key, const T &value) const {
        const auto *bytes = reinterpret_cast<const uint8_t *>(&value);
        key.insert(key.end(), bytes, bytes + sizeof value);
    }

  public:
    KeyBytes(const ArrowSchema &schema, const ArrowArray &array) : column{array}, format(schema.format) {
        if (format[0] == '\0' || std::strchr("ncsilfgbudt", format[0]) == nullptr)
            throw std::invalid_argument(std::string("no keys of Arrow's ") + format);
    }

    int64_t size() const { return column.size(); }

    // Returns the values if they are whole numbers of type T, and none is NULL; otherwise null.
    template <typename T> const T *whole() const {
        constexpr char of = sizeof(T) == 1 ? 'c' : sizeof(T) == 2 ? 's' : sizeof(T) == 4 ? 'i' : 'l';
        const bool full = column.of.null_count == 0 || column.of.buffers[0] == nullptr;
        return full && format[0] == of ? column.data<T>() : nullptr;
    }

    void append(std::vector<uint8_t> &key, int64_t row) const {
        double real = 0;
        bool there = format[0] != 'n' && column.there(row);
        if (there && format[0] == 'f') real = static_cast<double>(column.data<float>()[row]);
        if (there && format[0] == 'g') real = column.data<double>()[row];
        there = there && real == real;
        key.push_back(there);
        if (!there) return;
        switch (format[0]) {
            case 'c': return add(key, column.data<int8_t>()[row]);
            case 's': return add(key, column.data<int16_t>()[row]);
            case 'i': return add(key, column.data<int32_t>()[row]);
            case 'l': return add(key, column.data<int64_t>()[row]);
            case 'f': case 'g': return add(key, of_double(real));
            case 'b': return key.push_back(column.bit(1, row));
            case 't':
                return short_time(format) ? add(key, column.data<int32_t>()[row])
                                          : add(key, column.data<int64_t>()[row]);
            case 'd': {
                const auto *word = static_cast<const uint8_t *>(column.of.buffers[1]);
                word += 16 * (column.of.offset + row);
                key.insert(key.end(), word, word + 16);
                return;
            }
            default: {
                const auto *ends = column.data<int32_t>();
                const auto *data = static_cast<const uint8_t *>(column.of.buffers[2]);
                add(key, ends[row + 1] - ends[row]);
                if (ends[row + 1] > ends[row])
                    key.insert(key.end(), data + ends[row], data + ends[row + 1]);
            }
        }
    }
};

// Numbers whole numbers as `number_rows` does, without a row of bytes for each.
template <typename T, typename Fresh>
void number_whole(const T *values, Codes &codes, int64_t count, int64_t *out, Fresh fresh) {
    uint8_t key[1 + sizeof(T)] = {1};  // as `KeyBytes` makes it
    for (int64_t row = 0; row < count; ++row) {
        std::memcpy(key + 1, values + row, sizeof(T));
        int64_t known = codes.size();
        out[row] = codes.code(key, sizeof key);
        if (out[row] == known) fresh(row);
    }
}

// Numbers the combination of values in each of `count` rows. Calls `fresh(row)` for the first row of
// each that is new.
template <typename Fresh>
void number_rows(const std::vector<KeyBytes> &columns, Codes &codes, int64_t count, int64_t *out, Fresh fresh) {
    for (const KeyBytes &column : columns)
        if (column.size() != count) throw std::length_error("columns of other lengths");
    if (columns.size() == 1) {
        if (const auto *values = columns[0].whole<int32_t>()) return number_whole(values, codes, count, out, fresh);
        if (const auto *values = columns[0].whole<int64_t>()) return number_whole(values, codes, count, out, fresh);
    }
    std::vector<uint8_t> key;
    for (int64_t row = 0; row < count; ++row) {
        key.clear();
        for (const KeyBytes &column : columns) column.append(key, row);
        int64_t known = codes.size();
        out[row] = codes.code(key.data(), static_cast<int64_t>(key.size()));
        if (out[row] == known) fresh(row);
    }
}

inline PyObject *keys(PyObject *args) {
    PyObject *columns_, *codes_, *out_;
    if (!PyArg_ParseTuple(args, "OOO", &columns_, &codes_, &out_)) throw Raised();
    Out out(out_, true);
    std::vector<KeyBytes> columns;
    for (const Given &one : given(columns_)) columns.emplace_back(*one.schema, *one.array);
    number_rows(columns, Owner<Codes>::checked(codes_), out.size, out.data, [](int64_t) {});
    Py_RETURN_NONE;
}

// Writes the number of each value, and the flag that is 0 for NULL; the number of NULL is 0.
inline PyObject *numbers(PyObject *args) {
    PyObject *schema_, *column_, *codes_, *out_, *flags_;
    if (!PyArg_ParseTuple(args, "OOOOO", &schema_, &column_, &codes_, &out_, &flags_)) throw Raised();
    const char *format = unwrapped<ArrowSchema>(schema_, "arrow_schema").format;
    Values column{unwrapped<ArrowArray>(column_, "arrow_array")};
    Codes &codes = Owner<Codes>::checked(codes_);
    Out out(out_, true);
    View<uint8_t> flags(flags_, true);
    out.want(column.size());
    flags.want(column.size());
    if (out.size < column.size()) throw std::length_error("numbers without room");
    if (column.size() > 0) switch (format[0]) {
        case 'c': copied<int8_t>(column, out.data); break;
        case 's': copied<int16_t>(column, out.data); break;
        case 'i': copied<int32_t>(column, out.data); break;
        case 'l': copied<int64_t>(column, out.data); break;
        case 'f': copied<float>(column, out.data); break;
        case 'g': copied<double>(column, out.data); break;
        case 'u': coded_texts(column, codes, out.data); break;
        case 'd': {
            const char *digits = std::strchr(format, ':');
            decimals(column, digits != nullptr && std::atoi(digits + 1) <= 18, codes, out.data);
            break;
        }
        case 'b':
            for (int64_t row = 0; row < column.size(); ++row) out.data[row] = column.bit(1, row);
            break;
        case 't':
            short_time(format) ? copied<int32_t>(column, out.data)
                               : copied<int64_t>(column, out.data);
            break;
        default: throw std::invalid_argument(std::string("no numbers of Arrow's ") + format);
    }
    if (flags.data != nullptr)
        for (int64_t row = 0; row < column.size(); ++row) {
            flags.data[row] = column.there(row);
            if (!flags.data[row]) out.data[row] = 0;
        }
    Py_RETURN_NONE;
}
