// Reads JSON objects, one in each of some texts, as columns of text.
//
// Only what is common is read here: objects whose known members are texts, numbers, booleans or null.
// Anything else, and whatever is wrong, is left to the readable twin (`seustream/jsonlines.py`), which
// takes the same texts again.
#pragma once

#include "taken.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

// The members of one text, from left to right. A method that returns false has met something uncommon.
class JsonText {
    static constexpr int DEEPEST = 64;
    static constexpr int64_t LONGEST_NUMBER = 4000;  // Python limits the digits of an integer

    const uint8_t *at, *const end;

    static bool digit(uint8_t letter) { return letter >= '0' && letter <= '9'; }

    bool digits() {
        const uint8_t *begin = at;
        while (at < end && digit(*at)) ++at;
        return at > begin;
    }

    bool word(std::string_view wanted) {
        if (static_cast<size_t>(end - at) < wanted.size() ||
            std::memcmp(at, wanted.data(), wanted.size()) != 0)
            return false;
        at += wanted.size();
        return true;
    }

    // Reads the four digits of an escape.
    bool unit(uint32_t &found) {
        if (end - at < 4) return false;
        found = 0;
        for (int i = 0; i < 4; ++i, ++at) {
            uint32_t letter = *at | 0x20u;
            if (digit(*at)) found = found << 4 | (*at - uint32_t{'0'});
            else if (letter >= 'a' && letter <= 'f') found = found << 4 | (letter - 'a' + 10);
            else return false;
        }
        return true;
    }

    bool escaped(std::string &into) {
        static constexpr std::string_view LETTERS = "\"\\/bfnrt", MEANT = "\"\\/\b\f\n\r\t";
        if (at == end) return false;
        auto letter = static_cast<char>(*at++);
        if (size_t known = LETTERS.find(letter); known != LETTERS.npos) {
            into += MEANT[known];
            return true;
        }
        uint32_t point, low;
        if (letter != 'u' || !unit(point)) return false;
        if (point >= 0xD800 && point < 0xE000) {  // a pair, or no Unicode text
            if (point >= 0xDC00 || !word("\\u") || !unit(low) || low < 0xDC00 || low >= 0xE000) return false;
            point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00));
        }
        auto more = [&](uint32_t shift) { into += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
        if (point < 0x80) return into += static_cast<char>(point), true;
        if (point < 0x800) return into += static_cast<char>(0xC0 | point >> 6), more(0), true;
        if (point < 0x10000) return into += static_cast<char>(0xE0 | point >> 12), more(6), more(0), true;
        return into += static_cast<char>(0xF0 | point >> 18), more(12), more(6), more(0), true;
    }

    bool list(char closing, int depth, std::string &scratch) {
        ++at;
        blanks();
        if (take(closing)) return true;
        for (std::string_view ignored;;) {
            if (closing == '}') {
                if (!text(ignored, scratch)) return false;
                blanks();
                if (!take(':')) return false;
                blanks();
            }
            if (!any(depth + 1, scratch)) return false;
            blanks();
            if (take(closing)) return true;
            if (!take(',')) return false;
            blanks();
        }
    }

  public:
    JsonText(const uint8_t *begin, const uint8_t *end) : at(begin), end(end) {}

    void blanks() {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) ++at;
    }

    bool over() const { return at == end; }

    // The next byte; 0 at the end.
    char next() const { return over() ? '\0' : static_cast<char>(*at); }

    bool take(char wanted) {
        if (next() != wanted) return false;
        ++at;
        return true;
    }

    // Reads a text in quotes. What has escapes is decoded into `scratch`.
    bool text(std::string_view &found, std::string &scratch) {
        if (!take('"')) return false;
        const uint8_t *begin = at;
        while (at < end && *at != '"' && *at != '\\' && *at >= 0x20) ++at;
        auto piece = [&](const uint8_t *from) {
            return std::string_view(reinterpret_cast<const char *>(from), static_cast<size_t>(at - from));
        };
        found = piece(begin);
        if (take('"')) return true;
        scratch.assign(found);
        while (at < end && *at >= 0x20) {
            if (take('"')) return found = scratch, true;
            if (take('\\')) {
                if (!escaped(scratch)) return false;
                continue;
            }
            begin = at;
            while (at < end && *at != '"' && *at != '\\' && *at >= 0x20) ++at;
            scratch += piece(begin);
        }
        return false;
    }

    // Reads a number as it is written; the integer -0 is 0. Python writes three more, which JSON lacks.
    bool number(std::string_view &found) {
        const uint8_t *begin = at;
        if (word("NaN")) return found = "nan", true;
        bool below = take('-');
        if (word("Infinity")) return found = below ? "-inf" : "inf", true;
        if (!take('0') && !digits()) return false;
        bool whole = true;
        if (take('.') && (whole = false, !digits())) return false;
        if (next() == 'e' || next() == 'E') {
            whole = false;
            ++at;
            if (!take('-')) take('+');
            if (!digits()) return false;
        }
        if (at - begin > LONGEST_NUMBER) return false;
        found = {reinterpret_cast<const char *>(begin), static_cast<size_t>(at - begin)};
        if (whole && found == "-0") found = "0";
        return true;
    }

    bool boolean(std::string_view &found) {
        found = next() == 't' ? "true" : "false";
        return word(found);
    }

    bool null() { return word("null"); }

    // Reads a value that does not matter.
    bool any(int depth, std::string &scratch) {
        std::string_view ignored;
        switch (next()) {
            case '"': return text(ignored, scratch);
            case 't': case 'f': return boolean(ignored);
            case 'n': return null();
            case '{': return depth < DEEPEST && list('}', depth, scratch);
            case '[': return depth < DEEPEST && list(']', depth, scratch);
            default: return number(ignored);
        }
    }
};

// One column of text while it grows.
class TextColumn {
    std::string data;
    std::vector<int32_t> ends{0};
    std::vector<uint8_t> known;
    int64_t missing = 0;

  public:
    int64_t row = -1;  // the last one whose object has the column

    void add(std::string_view text) {
        data += text;
        finish(true);
    }

    void finish(bool is_known) {
        if (data.size() > INT32_MAX) throw std::length_error("more than 2^31 bytes of text");
        ends.push_back(static_cast<int32_t>(data.size()));
        known.push_back(is_known);
        missing += !is_known;
    }

    ArrowArray *array() const {
        auto made = std::make_unique<Made>();
        auto rows = static_cast<int64_t>(known.size());
        if (missing != 0) {
            auto *bits = made->room<uint8_t>(0, rows / 8 + 1, true);
            for (int64_t i = 0; i < rows; ++i)
                bits[i >> 3] = static_cast<uint8_t>(bits[i >> 3] | known[static_cast<size_t>(i)] << (i & 7));
        }
        std::memcpy(made->room<int32_t>(1, rows + 1), ends.data(), ends.size() * sizeof(int32_t));
        std::memcpy(made->room<uint8_t>(2, static_cast<int64_t>(data.size())), data.data(), data.size());
        const void **buffers = made->buffers;
        return new ArrowArray{rows, missing, 0, 3, 0, buffers, nullptr, nullptr, Made::release, made.release()};
    }
};

class Objects {
    static constexpr int64_t NOWHERE = -1;
    struct Key {
        std::string name;
        int64_t slot;
    };
    std::vector<uint8_t> texts_only;
    std::vector<Key> usual;  // the keys of the object before, in their order
    std::unordered_map<std::string, int64_t> slots;

    int64_t asked(PyObject *slot_of, const std::string &name) {
        auto [known, is_new] = slots.try_emplace(name, NOWHERE);
        if (!is_new) return known->second;
        PyObject *answer = PyObject_CallFunction(slot_of, "s#", name.data(), static_cast<Py_ssize_t>(name.size()));
        if (answer == nullptr) throw Raised();
        int64_t slot = answer == Py_None ? NOWHERE : PyLong_AsLongLong(answer);
        Py_DECREF(answer);
        if (PyErr_Occurred() != nullptr) throw Raised();
        if (slot >= static_cast<int64_t>(texts_only.size())) throw std::out_of_range("there is no such column");
        return known->second = slot;
    }

    // Returns the column of a key, which usually is that of the object before.
    int64_t slot(PyObject *slot_of, size_t place, std::string_view name) {
        if (place < usual.size() && usual[place].name == name) return usual[place].slot;
        Key key{std::string(name), 0};
        key.slot = asked(slot_of, key.name);
        if (place < usual.size()) usual[place] = key;
        else if (place == usual.size() && place < 256) usual.push_back(key);
        return key.slot;
    }

    // Reads one object; returns false if it is uncommon.
    bool object(PyObject *slot_of, JsonText &json, int64_t row, std::vector<TextColumn> &columns,
                std::string &scratch) {
        if (!json.take('{')) return false;
        json.blanks();
        bool more = !json.take('}');
        for (size_t place = 0; more; ++place) {
            std::string_view found;
            json.blanks();
            if (!json.text(found, scratch)) return false;
            int64_t at = slot(slot_of, place, found);
            json.blanks();
            if (!json.take(':')) return false;
            json.blanks();
            if (at == NOWHERE) {
                if (!json.any(0, scratch)) return false;
            } else if (!value(json, columns[static_cast<size_t>(at)], texts_only[static_cast<size_t>(at)] != 0,
                              row, scratch)) {
                return false;
            }
            json.blanks();
            more = json.take(',');
            if (!more && !json.take('}')) return false;
        }
        json.blanks();
        return json.over();
    }

    static bool value(JsonText &json, TextColumn &column, bool text_only, int64_t row, std::string &scratch) {
        if (column.row == row) return false;  // there more than once
        column.row = row;
        std::string_view found;
        switch (json.next()) {
            case '"':
                if (!json.text(found, scratch)) return false;
                break;
            case 'n':
                if (!json.null()) return false;
                column.finish(false);
                return true;
            case 't': case 'f':
                if (text_only || !json.boolean(found)) return false;
                break;
            default:
                if (text_only || !json.number(found)) return false;
        }
        column.add(found);
        return true;
    }

    static bool is_unicode(const uint8_t *from, const uint8_t *to) {
        PyObject *text = PyUnicode_DecodeUTF8(reinterpret_cast<const char *>(from), to - from, nullptr);
        if (text == nullptr) PyErr_Clear();
        Py_XDECREF(text);
        return text != nullptr;
    }

  public:
    PyObject *configure(PyObject *args) {
        PyObject *only_;
        if (!PyArg_ParseTuple(args, "O", &only_)) throw Raised();
        Bytes only(only_);
        texts_only.assign(only.data, only.data + only.size);
        Py_RETURN_NONE;
    }

    PyObject *read(PyObject *args) {
        PyObject *data_, *ends_, *places_, *slot_of;
        if (!PyArg_ParseTuple(args, "OOOO", &data_, &ends_, &places_, &slot_of)) throw Raised();
        Bytes data(data_);
        Ints ends(ends_);
        Out places(places_, true);
        places.want(ends.size - 1);
        for (int64_t i = 0; i < ends.size; ++i)
            if (ends.data[i] < (i == 0 ? 0 : ends.data[i - 1]) || ends.data[i] > data.size)
                throw std::out_of_range("a text beyond the data");
        if (ends.size > 0 && !is_unicode(data.data + ends.data[0], data.data + ends.data[ends.size - 1]))
            Py_RETURN_NONE;
        int64_t rows = 0;
        std::vector<TextColumn> columns(texts_only.size());
        std::string scratch;
        for (int64_t i = 0; i + 1 < ends.size; ++i) {
            JsonText json(data.data + ends.data[i], data.data + ends.data[i + 1]);
            json.blanks();
            if (json.over()) continue;
            if (!object(slot_of, json, rows, columns, scratch)) Py_RETURN_NONE;
            for (TextColumn &column : columns)
                if (column.row != rows) column.finish(false);
            places.data[rows++] = i;
        }
        PyObject *found = PyTuple_New(static_cast<Py_ssize_t>(columns.size()));
        for (size_t i = 0; found != nullptr && i < columns.size(); ++i) {
            PyObject *one = handed_over(columns[i].array());
            if (one == nullptr || PyTuple_SetItem(found, static_cast<Py_ssize_t>(i), one) != 0)
                Py_CLEAR(found);
        }
        return found;
    }
};
