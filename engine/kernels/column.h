// A column of members as 64-bit words: kernels read them, and values are rebuilt from them.
//
// Texts are codes; decimals of more than 18 digits take two words; a NULL is a flag. NaN is NULL.
#pragma once

#include "codes.h"
#include "grown.h"
#include "taken.h"

#include <cstdlib>
#include <string>

// Returns Arrow's formats of types that are passed as a tuple of capsules.
inline std::vector<std::string> formats(PyObject *types) {
    std::vector<std::string> found;
    if (!PyTuple_Check(types)) throw std::invalid_argument("types that are no tuple");
    for (Py_ssize_t i = 0; i < PyTuple_Size(types); ++i)
        found.emplace_back(unwrapped<ArrowSchema>(PyTuple_GetItem(types, i), "arrow_schema").format);
    return found;
}

// Returns an array of `count` rows that owns what was made for it.
inline ArrowArray finished(std::unique_ptr<Made> made, int64_t count, int64_t nulls, int buffers) {
    ArrowArray array{count, nulls, 0, buffers, 0, made->buffers, nullptr, nullptr, Made::release, made.get()};
    made.release();
    return array;
}

// Writes the validity of rows; returns how many of them are NULL. A column without NULL has no such
// buffer.
template <typename There>
int64_t validity(Made &made, int64_t count, There there) {
    int64_t nulls = 0;
    for (int64_t i = 0; i < count; ++i) nulls += !there(i);
    if (nulls == 0) return 0;
    auto *bits = made.room<uint8_t>(0, count / 8 + 1, true);
    for (int64_t i = 0; i < count; ++i)
        bits[i >> 3] = static_cast<uint8_t>(bits[i >> 3] | there(i) << (i & 7));
    return nulls;
}

class Column {
    Grown<int64_t> all;
    Grown<uint8_t> there;
    bool flagged = false, wide = false;

    template <typename T>
    void whole(const T *values, int64_t count) {
        auto *out = all.room(count);
        for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(values[i]);
    }

    template <typename T>
    void reals(const T *values, int64_t count) {
        auto *out = all.room(count);
        for (int64_t i = 0; i < count; ++i) {
            double value = static_cast<double>(values[i]);
            std::memcpy(out + i, &value, 8);
        }
    }

    // Adds the words of some values; those of NULLs are arbitrary.
    void words_of(const Given &of, int64_t from, int64_t count) {
        Values column = of.values();
        switch (of.schema->format[0]) {
            case 'n': all.room(count); return;
            case 'c': return whole(column.data<int8_t>() + from, count);
            case 's': return whole(column.data<int16_t>() + from, count);
            case 'i': return whole(column.data<int32_t>() + from, count);
            case 'l': return whole(column.data<int64_t>() + from, count);
            case 'f': return reals(column.data<float>() + from, count);
            case 'g': return reals(column.data<double>() + from, count);
            case 'b': {
                auto *out = all.room(count);
                for (int64_t i = 0; i < count; ++i) out[i] = column.bit(1, from + i);
                return;
            }
            case 't':
                return short_time(of.schema->format) ? whole(column.data<int32_t>() + from, count)
                                                     : whole(column.data<int64_t>() + from, count);
            case 'd': {
                const auto *bytes = static_cast<const uint8_t *>(column.of.buffers[1]);
                bytes += 16 * (column.of.offset + from);
                auto *out = all.room(count * width());
                for (int64_t i = 0; i < count; ++i)
                    std::memcpy(out + i * width(), bytes + 16 * i, static_cast<size_t>(8 * width()));
                return;
            }
            case 'u': {
                const auto *ends = column.data<int32_t>() + from;
                const auto *data = static_cast<const uint8_t *>(column.of.buffers[2]);
                auto *out = all.room(count);
                for (int64_t i = 0; i < count; ++i)
                    if (column.there(from + i)) out[i] = codes.code(data + ends[i], ends[i + 1] - ends[i]);
                return;
            }
            default: break;
        }
        throw std::invalid_argument(std::string("no columns of Arrow's ") + of.schema->format);
    }

    bool real() const { return format[0] == 'f' || format[0] == 'g'; }

    bool nan(int64_t place) const {
        double value;
        std::memcpy(&value, all.data() + place, 8);
        return value != value;
    }

    template <typename T>
    static void put(Made &made, const int64_t *places, int64_t count, const int64_t *words) {
        T *out = made.room<T>(1, count);
        for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(words[places[i]]);
    }

    void texts(Made &made, const int64_t *places, int64_t count, const std::vector<uint8_t> &has) const {
        auto *ends = made.room<int32_t>(1, count + 1);
        std::vector<uint8_t> found;
        ends[0] = 0;
        for (int64_t i = 0; i < count; ++i) {
            if (has.empty() || has[static_cast<size_t>(i)]) codes.add_text(all.data()[places[i]], found);
            if (found.size() > INT32_MAX) throw std::length_error("more than 2^31 bytes of text");
            ends[i + 1] = static_cast<int32_t>(found.size());
        }
        auto *out = made.room<uint8_t>(2, static_cast<int64_t>(found.size()));
        if (!found.empty()) std::memcpy(out, found.data(), found.size());
    }

  public:
    std::string format;
    Codes codes;

    void become(const std::string &of) {
        format = of;
        const char *digits = std::strchr(format.c_str(), ':');
        wide = format[0] == 'd' && digits != nullptr && std::atoi(digits + 1) > 18;
    }

    int width() const { return wide ? 2 : 1; }
    int64_t size() const { return all.size() / width(); }
    Span<int64_t> words() const {
        static const int64_t nothing = 0;  // a column without values is there all the same
        return {all.size() > 0 ? all.data() : &nothing, all.size()};
    }

    // 0 where a value is NULL; missing if no value is.
    Span<uint8_t> flags() const {
        return flagged ? Span<uint8_t>{there.data(), there.size()} : Span<uint8_t>{};
    }

    void append(const Given &of, int64_t from, int64_t count) {
        const char *other = of.schema->format;
        bool one_kind = format[0] == other[0] || (std::strchr("csil", format[0]) && std::strchr("csil", other[0])) ||
                        (real() && (other[0] == 'f' || other[0] == 'g')) || other[0] == 'n';
        if (!one_kind) throw std::invalid_argument("a column of " + format + " is given " + other);
        if (count == 0) return;
        int64_t before = size();
        if (other[0] == 'n')
            all.room(count * width());
        else
            words_of(of, from, count);
        Values column = of.values();
        bool none = other[0] == 'n' || format[0] == 'n';
        bool nulls = !none && column.of.null_count != 0 && column.of.buffers[0] != nullptr;
        auto lacks = [&](int64_t i) { return none || (nulls && !column.there(from + i)) || (real() && nan(before + i)); };
        if (!flagged) {
            bool any = none;
            for (int64_t i = 0; nulls && i < count; ++i) any |= !column.there(from + i);
            for (int64_t i = 0; real() && i < count; ++i) any |= nan(before + i);
            if (!any) return;
            flagged = true;
            there.add(before, 1);
        }
        auto *out = there.room(count);
        for (int64_t i = 0; i < count; ++i) out[i] = !lacks(i);
    }

    // Drops the first `count` values.
    void drop(int64_t count) {
        all.drop(count * width());
        if (flagged) there.drop(count);
    }

    // Keeps only the values in some places, and their texts.
    void keep(const std::vector<int64_t> &places) {
        Column kept;
        kept.become(format);
        kept.flagged = flagged;
        std::vector<uint8_t> text;
        for (int64_t place : places) {
            bool has = !flagged || there.data()[place];
            if (flagged) kept.there.add(has);
            if (format[0] == 'u' && has) {
                text.clear();
                codes.add_text(all.data()[place], text);
                kept.all.add(kept.codes.code(text.data(), static_cast<int64_t>(text.size())));
            } else {
                for (int i = 0; i < width(); ++i) kept.all.add(all.data()[place * width() + i]);
            }
        }
        *this = std::move(kept);
    }

    // Returns the values in some places; NULL where `known` has a 0, whatever the place is.
    ArrowArray take(const int64_t *asked, int64_t count, const uint8_t *known = nullptr) const {
        std::vector<uint8_t> has;  // by row; empty if no value is NULL
        std::vector<int64_t> inside;
        const int64_t *places = asked, nothing[2] = {0, 0}, *words = size() > 0 ? all.data() : nothing;
        if (known || flagged) {
            has.assign(static_cast<size_t>(count), 0);
            inside.assign(static_cast<size_t>(count), 0);
            places = inside.data();
        }
        for (int64_t i = 0; i < count; ++i) {
            if (known && !known[i]) continue;
            if (asked[i] < 0 || asked[i] >= size()) throw std::out_of_range("a value that is not there");
            if (has.empty()) continue;
            has[static_cast<size_t>(i)] = !flagged || there.data()[asked[i]];
            inside[static_cast<size_t>(i)] = asked[i];
        }
        auto made = std::make_unique<Made>();
        if (format[0] == 'n') return finished(std::move(made), count, count, 0);
        int64_t nulls = 0;
        if (!has.empty())
            nulls = validity(*made, count, [&](int64_t i) { return has[static_cast<size_t>(i)] != 0; });
        int buffers = 2;
        switch (format[0]) {
            case 'c': put<int8_t>(*made, places, count, words); break;
            case 's': put<int16_t>(*made, places, count, words); break;
            case 'i': put<int32_t>(*made, places, count, words); break;
            case 'l': case 'g': put<int64_t>(*made, places, count, words); break;
            case 'f': {
                auto *out = made->room<float>(1, count);
                for (int64_t i = 0; i < count; ++i) {
                    double value;
                    std::memcpy(&value, words + places[i], 8);
                    out[i] = static_cast<float>(value);
                }
                break;
            }
            case 'b': {
                auto *out = made->room<uint8_t>(1, count / 8 + 1, true);
                for (int64_t i = 0; i < count; ++i)
                    out[i >> 3] = static_cast<uint8_t>(out[i >> 3] | (words[places[i]] != 0) << (i & 7));
                break;
            }
            case 't':
                if (short_time(format.c_str()))
                    put<int32_t>(*made, places, count, words);
                else
                    put<int64_t>(*made, places, count, words);
                break;
            case 'd': {
                auto *out = made->room<int64_t>(1, 2 * count);
                for (int64_t i = 0; i < count; ++i) {
                    const int64_t *from = words + places[i] * width();
                    out[2 * i] = from[0];
                    out[2 * i + 1] = wide ? from[1] : from[0] >> 63;
                }
                break;
            }
            case 'u': texts(*made, places, count, has); buffers = 3; break;
            default: throw std::invalid_argument("no columns of Arrow's " + format);
        }
        return finished(std::move(made), count, nulls, buffers);
    }
};
