// Groups of the rows of a key that are numbered as time goes on.
//
// Sessions: the rows of a key without a gap between them. They are numbered in the order of their first rows.
#pragma once

#include "binding.h"

#include <algorithm>
#include <queue>
#include <utility>

class Sessions {
    struct Session {
        int64_t latest;  // time of its last row so far
        int64_t whose;
    };
    using Due = std::pair<int64_t, int64_t>;  // the time of some row of a session, and the session

    int64_t gap = 1;
    std::vector<int64_t> of_key;  // the last session of each key, -1 if there is none
    std::vector<Session> sessions;
    std::priority_queue<Due, std::vector<Due>, std::greater<Due>> due;  // once for each open session
    std::vector<int64_t> given;

  public:
    PyObject *configure(PyObject *args) {
        long long gap_;
        if (!PyArg_ParseTuple(args, "L", &gap_)) throw Raised();
        gap = gap_;
        Py_RETURN_NONE;
    }

    // Takes the next rows: the numbers of their keys, their times and their queries. The rows of a key
    // come in the order of their times. Writes the sessions that they are in,
    // and the time of the row before each in its session; of the first row, its own.
    PyObject *add(PyObject *args) {
        PyObject *keys_, *times_, *whose_, *out_, *previous_;
        if (!PyArg_ParseTuple(args, "OOOOO", &keys_, &times_, &whose_, &out_, &previous_)) throw Raised();
        Ints keys(keys_), times(times_), whose(whose_);
        Out out(out_, true), previous(previous_, true);
        times.want(keys.size);
        whose.want(keys.size);
        out.want(keys.size);
        previous.want(keys.size);
        for (int64_t i = 0; i < keys.size; ++i) {
            if (keys.data[i] < 0) throw std::out_of_range("a key below 0");
            auto key = static_cast<size_t>(keys.data[i]);
            if (key >= of_key.size()) of_key.resize(key + 1, -1);
            int64_t time = times.data[i];
            if (of_key[key] < 0 || time - sessions[static_cast<size_t>(of_key[key])].latest >= gap) {
                of_key[key] = static_cast<int64_t>(sessions.size());
                sessions.push_back({time, whose.data ? whose.data[i] : 0});
                due.push({time, of_key[key]});
            }
            Session &own = sessions[static_cast<size_t>(of_key[key])];
            out.data[i] = of_key[key];
            previous.data[i] = own.latest;
            own.latest = time;
        }
        Py_RETURN_NONE;
    }

    // Finds the sessions whose last row is at a time or before, of the queries with a flag, or of all;
    // returns how many they are.
    PyObject *over(PyObject *args) {
        long long until;
        PyObject *some_;
        if (!PyArg_ParseTuple(args, "LO", &until, &some_)) throw Raised();
        Bytes some(some_);
        std::vector<Due> others;
        given.clear();
        while (!due.empty() && due.top().first <= until) {
            auto [time, number] = due.top();
            due.pop();
            const Session &own = sessions[static_cast<size_t>(number)];
            if (own.latest > time) {
                due.push({own.latest, number});
                continue;
            }
            if (some.data && (own.whose >= some.size || !some.data[own.whose])) {
                others.push_back({time, number});
                continue;
            }
            given.push_back(number);
        }
        for (const Due &one : others) due.push(one);
        std::sort(given.begin(), given.end());
        return PyLong_FromSize_t(given.size());
    }

    // Writes the sessions found last, in order.
    PyObject *take(PyObject *args) {
        PyObject *out_;
        if (!PyArg_ParseTuple(args, "O", &out_)) throw Raised();
        Out out(out_, true);
        out.want(static_cast<int64_t>(given.size()));
        std::copy(given.begin(), given.end(), out.data);
        Py_RETURN_NONE;
    }

    // Writes the times of the last rows of some sessions.
    PyObject *latest(PyObject *args) {
        PyObject *some_, *out_;
        if (!PyArg_ParseTuple(args, "OO", &some_, &out_)) throw Raised();
        Ints some(some_);
        Out out(out_, true);
        out.want(some.size);
        for (int64_t i = 0; i < some.size; ++i) {
            if (some.data[i] < 0 || static_cast<size_t>(some.data[i]) >= sessions.size())
                throw std::out_of_range("a session that is not there");
            out.data[i] = sessions[static_cast<size_t>(some.data[i])].latest;
        }
        Py_RETURN_NONE;
    }

    // Takes back the sessions found last.
    PyObject *put_back(PyObject *) {
        for (int64_t one : given) due.push({sessions[static_cast<size_t>(one)].latest, one});
        given.clear();
        Py_RETURN_NONE;
    }

    // Returns the earliest time at which an open session can have its last row; None if none is open.
    PyObject *earliest(PyObject *) {
        if (due.empty()) Py_RETURN_NONE;
        return PyLong_FromLongLong(static_cast<long long>(due.top().first));
    }
};

// Spells: the rows of a key that have one mark. The marks of a key only rise.
class Spells {
    struct Spell {
        int64_t mark, number = -1;
    };
    std::vector<Spell> of_key;  // the last of each key
    int64_t spells = 0;

  public:
    // Takes the next rows: the numbers of their keys, and their marks. Writes the spells that they are in.
    PyObject *add(PyObject *args) {
        PyObject *keys_, *marks_, *out_;
        if (!PyArg_ParseTuple(args, "OOO", &keys_, &marks_, &out_)) throw Raised();
        Ints keys(keys_), marks(marks_);
        Out out(out_, true);
        marks.want(keys.size);
        out.want(keys.size);
        for (int64_t i = 0; i < keys.size; ++i) {
            if (keys.data[i] < 0) throw std::out_of_range("a key below 0");
            auto key = static_cast<size_t>(keys.data[i]);
            if (key >= of_key.size()) of_key.resize(key + 1);
            Spell &own = of_key[key];
            if (own.number < 0 || own.mark != marks.data[i]) own = {marks.data[i], spells++};
            out.data[i] = own.number;
        }
        Py_RETURN_NONE;
    }
};
