// Aggregates of groups whose members come and leave.
#pragma once

#include "best.h"
#include "bits.h"
#include "keys.h"
#include "moments.h"
#include "needed.h"
#include "totals.h"

#include <memory>
#include <numeric>

// Members are numbered in order of arrival, and their arguments kept as columns. A *part* is a state
// for each group that several aggregates may read: those that sum one argument share it.
class Aggregates {
  public:
    enum Kind : int { SUMS, PICKS, OTHER, MOMENTS, BITS };  // the states of `OTHER` are not here
    enum Asked : int { COUNT, SUM, MEAN, MEMBER, NOTHING, SET };

  private:
    // The longest intervals that Python can represent, in milliseconds.
    static constexpr int64_t SHORTEST = -86399999913600000, LONGEST = 86399999999999999;

    struct Part {
        int kind = OTHER, wanted = LEAST;
        std::vector<size_t> read;  // the columns of its arguments
        bool once = false;         // equal members of a group count once
        bool sums = false, means = false;
        Grown<uint8_t> both;  // of several arguments: 0 where one is NULL
        Codes keys;           // with `once`: of groups and values
        Grown<int64_t> codes;
        Repeats repeats;
        Totals totals;
        Best best;
        std::vector<int64_t> events, until;  // the turns without repetitions
        Needed needed;                       // of `OTHER`
        Moments moments;
        Bits bits;
        // The answers of the latest run, by point.
        std::vector<int64_t> counts, summed, averaged, members;
        std::vector<uint8_t> known;
    };
    struct Result {
        size_t part;
        int asked;
        std::string format;
    };

    std::vector<Column> columns;
    std::vector<uint8_t> whole;  // columns in which NULL is a value like any other
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<Result> results;
    Grown<uint32_t> group;
    bool ordered = false, others = false;
    std::vector<int64_t> at;  // the groups of the latest points, if there are `others`
    std::vector<ArrowArray> made;

    void clear() {
        for (ArrowArray &one : made)
            if (one.release != nullptr) one.release(&one);
        made.clear();
    }

    Column &column(long long number) {
        if (number < 0 || static_cast<size_t>(number) >= columns.size())
            throw std::out_of_range("there is no such column");
        return columns[static_cast<size_t>(number)];
    }

    Part &part(long long number) {
        if (number < 0 || static_cast<size_t>(number) >= parts.size())
            throw std::out_of_range("there is no such part");
        return *parts[static_cast<size_t>(number)];
    }

    Span<uint8_t> flags(const Part &of) const {
        if (of.read.size() > 1) return {of.both.data(), of.both.size()};
        if (of.read.empty() || whole[of.read[0]]) return {};
        return columns[of.read[0]].flags();
    }

    void add_to(Part &of, const std::vector<Given> &values, const int64_t *groups, int64_t count) {
        if (of.read.size() > 1) {
            auto *both = of.both.room(count);
            std::fill_n(both, count, uint8_t(1));
            for (size_t number : of.read) {
                Span<uint8_t> mine = columns[number].flags();
                for (int64_t i = 0; mine.data && i < count; ++i) both[i] &= mine.data[mine.size - count + i];
            }
        }
        if (!of.once) return;
        std::vector<KeyBytes> some;
        for (size_t number : of.read) some.emplace_back(*values[number].schema, *values[number].array);
        std::vector<uint8_t> key;
        auto *codes = of.codes.room(count);
        for (int64_t i = 0; i < count; ++i) {
            const auto *bytes = reinterpret_cast<const uint8_t *>(groups + i);
            key.assign(bytes, bytes + sizeof *groups);
            for (const KeyBytes &one : some) one.append(key, i);
            codes[i] = of.keys.code(key.data(), static_cast<int64_t>(key.size()));
        }
    }

    static int summed(const Column &of) {
        switch (of.format[0]) {
            case 'd': return of.width() > 1 ? WIDE : DECIMAL;
            case 'f': case 'g': return REAL;
            case 't': return of.format[1] == 'D' ? SPAN : WHOLE;
            default: return WHOLE;
        }
    }

    static int compared(const Column &of) {
        switch (of.format[0]) {
            case 'd': return of.width() > 1 ? BY_WIDE : BY_WHOLE;
            case 'f': case 'g': return BY_REAL;
            case 'u': return BY_TEXT;
            default: return BY_WHOLE;
        }
    }

    // A mean of decimals has four more digits than its argument, as long as these are no more than 38.
    static int scale(const Column &of) {
        const char *digits = std::strchr(of.format.c_str(), ',');
        if (of.format[0] != 'd' || digits == nullptr) return 1;
        int has = std::atoi(digits + 1), times = 1;
        for (int i = std::min(has + 4, 38) - has; i > 0; --i) times *= 10;
        return times;
    }

    void sum(Part &of, const Turns &turns) {
        auto points = static_cast<size_t>(turns.until.size);
        Totals::Work work;
        work.flags = flags(of);
        of.counts.resize(points);
        work.counts = of.counts.data();
        if (of.sums || of.means) {
            const Column &values = columns[of.read[0]];
            work.kind = summed(values);
            work.scale = scale(values);
            work.words = values.words();
            size_t size = points * (work.kind >= DECIMAL ? 2 : 1);
            of.known.resize(std::max<size_t>(points, 1));
            work.known = of.known.data();
            if (of.sums) of.summed.resize(std::max<size_t>(size, 1)), work.sums = of.summed.data();
            if (of.means) of.averaged.resize(std::max<size_t>(size, 1)), work.means = of.averaged.data();
        }
        of.totals.compute(turns, work);
    }

    void add_up(Part &of, const Turns &turns) {
        Span<int64_t> xs = columns[of.read[0]].words(), ys;
        if (of.read.size() > 1) ys = columns[of.read[1]].words();
        of.moments.run(turns, flags(of), xs, ys);
    }

    void pick(Part &of, const Turns &turns) {
        const Column &by = columns[of.read.back()];
        Best::Work work;
        work.kind = compared(by);
        work.wanted = of.wanted;
        work.ordered = ordered;
        work.words = by.words();
        work.flags = flags(of);
        work.codes = &by.codes;
        of.members.resize(static_cast<size_t>(turns.until.size));
        of.best.run(turns, work, of.members.data());
    }

    // Calls `use` with the states of a part, if they are sums.
    template <typename Use> static void of_state(Part &of, Use use) {
        if (of.kind == SUMS) use(of.totals);
        if (of.kind == MOMENTS) use(of.moments);
        if (of.kind == BITS) use(of.bits);
    }

    void run(Part &of, const Turns &turns) {
        if (of.once)
            step(of, distinct(of, turns));
        else
            step(of, turns);
    }

    void step(Part &of, const Turns &turns) {
        switch (of.kind) {
            case SUMS: return sum(of, turns);
            case PICKS: return pick(of, turns);
            case MOMENTS: return add_up(of, turns);
            case BITS: return of.bits.run(turns, flags(of), columns[of.read[0]].words(), of.wanted);
            default: return of.needed.run(turns, flags(of));
        }
    }

    // Returns the turns without repetitions.
    Turns distinct(Part &of, const Turns &turns) {
        auto count = static_cast<size_t>(turns.events.size);
        std::vector<uint8_t> kept(count + 1);
        of.repeats.run(turns.events, base, {of.codes.data(), of.codes.size()}, flags(of), kept.data());
        of.events.clear();
        of.until.clear();
        size_t done = 0;
        auto up_to = [&](size_t end) {
            for (; done < end; ++done)
                if (kept[done]) of.events.push_back(turns.events.data[done]);
        };
        for (int64_t p = 0; p < turns.until.size; ++p) {
            up_to(static_cast<size_t>(turns.until.data[p]));
            of.until.push_back(static_cast<int64_t>(of.events.size()));
        }
        up_to(count);
        return Turns(of.events, of.until, turns.at, base, turns.group);
    }

    // Returns numbers as a column, NULL where they are not `known`. A number has `width` words.
    static ArrowArray numbers(const std::vector<int64_t> &words, int width, int64_t count,
                              const std::vector<uint8_t> &known) {
        auto made = std::make_unique<Made>();
        auto *out = made->room<int64_t>(1, width * count);
        if (count > 0) std::memcpy(out, words.data(), static_cast<size_t>(8 * width * count));
        int64_t nulls = 0;
        if (!known.empty())
            nulls = validity(*made, count, [&](int64_t i) { return known[static_cast<size_t>(i)] != 0; });
        return finished(std::move(made), count, nulls, 2);
    }

    // Makes the column of a result. Writes where it has no value because of a fault.
    ArrowArray made_of(const Result &of, int64_t points, std::vector<uint8_t> &lost) {
        Part &mine = *parts[of.part];
        lost.clear();
        if (of.asked == SET) return numbers(mine.bits.found, 1, points, mine.bits.known);
        if (of.asked == COUNT) return numbers(mine.counts, 1, points, {});
        if (of.asked == MEMBER) {
            std::vector<int64_t> places(static_cast<size_t>(points));
            std::vector<uint8_t> known(static_cast<size_t>(points));
            bool all = true;
            for (size_t i = 0; i < places.size(); ++i) {
                known[i] = mine.members[i] >= 0;
                places[i] = mine.members[i] - base;
                all = all && known[i];
            }
            return columns[mine.read[0]].take(places.data(), points, all ? nullptr : known.data());
        }
        const auto &words = of.asked == SUM ? mine.summed : mine.averaged;
        const uint8_t bit = of.asked == SUM ? 1 : 2;
        bool span = of.format[0] == 't', all = true, any = false;
        std::vector<uint8_t> known(static_cast<size_t>(points));
        lost.resize(static_cast<size_t>(points));
        for (size_t i = 0; i < known.size(); ++i) {
            known[i] = (mine.known[i] & bit) != 0 && !(span && (words[i] < SHORTEST || words[i] > LONGEST));
            lost[i] = !known[i] && mine.counts[i] > 0;
            all = all && known[i];
            any = any || lost[i];
        }
        if (all) known.clear();
        if (!any) lost.clear();
        return numbers(words, of.format[0] == 'd' ? 2 : 1, points, known);
    }

  public:
    int64_t base = 0;  // the number of the first member that is kept

    Aggregates() = default;
    Aggregates(const Aggregates &) = delete;
    Aggregates &operator=(const Aggregates &) = delete;
    ~Aggregates() { clear(); }

    // Takes the types of the arguments; by part its kind, the arguments that it reads, whether equal
    // members count once, and what it picks; by result its part, what is asked, and its type; the
    // arguments in which NULL is a value; and whether the members of a group leave in order.
    PyObject *configure(PyObject *args) {
        PyObject *types_, *parts_, *results_, *formats_, *whole_;
        int in_order;
        if (!PyArg_ParseTuple(args, "OO!O!OO!p", &types_, &PyTuple_Type, &parts_, &PyTuple_Type, &results_,
                              &formats_, &PyTuple_Type, &whole_, &in_order))
            throw Raised();
        for (const std::string &format : formats(types_)) columns.emplace_back().become(format);
        whole.assign(columns.size(), 0);
        ordered = in_order;
        for (Py_ssize_t i = 0; i < PyTuple_Size(whole_); ++i) {
            long long number = PyLong_AsLongLong(PyTuple_GetItem(whole_, i));
            column(number);
            whole[static_cast<size_t>(number)] = 1;
        }
        for (Py_ssize_t i = 0; i < PyTuple_Size(parts_); ++i) {
            auto mine = std::make_unique<Part>();
            PyObject *read_;
            int once;
            if (!PyArg_ParseTuple(PyTuple_GetItem(parts_, i), "iO!pi", &mine->kind, &PyTuple_Type, &read_, &once,
                                  &mine->wanted))
                throw Raised();
            for (Py_ssize_t k = 0; k < PyTuple_Size(read_); ++k) {
                long long number = PyLong_AsLongLong(PyTuple_GetItem(read_, k));
                column(number);
                mine->read.push_back(static_cast<size_t>(number));
            }
            for (size_t one : mine->read)
                if (mine->kind == MOMENTS && columns[one].format != "g") throw std::invalid_argument("moments of no reals");
            if (mine->kind == BITS && (mine->read.size() != 1 || columns[mine->read[0]].format != "l"))
                throw std::invalid_argument("bits of other than one integer");
            if (mine->kind == MOMENTS && (mine->read.empty() || mine->read.size() > 2))
                throw std::invalid_argument("moments of other than one or two reals");
            if (mine->kind == PICKS && mine->read.empty()) throw std::invalid_argument("the least of nothing");
            mine->once = once;
            others = others || mine->kind == OTHER;
            parts.push_back(std::move(mine));
        }
        std::vector<std::string> types = formats(formats_);
        if (static_cast<size_t>(PyTuple_Size(results_)) != types.size())
            throw std::invalid_argument("results without types");
        for (Py_ssize_t i = 0; i < PyTuple_Size(results_); ++i) {
            int of, asked;
            if (!PyArg_ParseTuple(PyTuple_GetItem(results_, i), "ii", &of, &asked)) throw Raised();
            Part &mine = part(of);
            bool fits = asked == MEMBER    ? mine.kind == PICKS
                        : asked == SET     ? mine.kind == BITS
                        : asked == NOTHING ? mine.kind == OTHER || mine.kind == MOMENTS
                                           : mine.kind == SUMS && (asked == COUNT || mine.read.size() == 1);
            if (!fits) throw std::invalid_argument("a result that its part does not have");
            mine.sums = mine.sums || asked == SUM;
            mine.means = mine.means || asked == MEAN;
            results.push_back({static_cast<size_t>(of), asked, types[static_cast<size_t>(i)]});
        }
        Py_RETURN_NONE;
    }

    int64_t size() const { return group.size(); }

    Span<uint32_t> groups() const { return {group.data(), group.size()}; }

    // Adds members with their groups.
    void take_in(const std::vector<Given> &values, const int64_t *groups, int64_t count) {
        if (values.size() != columns.size()) throw std::invalid_argument("members with other arguments");
        for (const Given &one : values)
            if (one.array->length != count) throw std::length_error("columns of other lengths");
        for (int64_t i = 0; i < count; ++i)
            if (groups[i] < 0 || groups[i] > UINT32_MAX) throw std::out_of_range("a group below 0 or above 2^32");
        std::transform(groups, groups + count, group.unset(count), [](int64_t one) { return static_cast<uint32_t>(one); });
        for (size_t i = 0; i < values.size(); ++i) columns[i].append(values[i], 0, count);
        for (auto &one : parts) add_to(*one, values, groups, count);
    }

    PyObject *add(PyObject *args) {
        PyObject *values_, *group_;
        if (!PyArg_ParseTuple(args, "OO", &values_, &group_)) throw Raised();
        Ints groups(group_);
        take_in(given(values_), groups.data, groups.size);
        Py_RETURN_NONE;
    }

    // Drops the first members, which have left.
    void drop(int64_t count) {
        base += count;
        group.drop(count);
        for (Column &one : columns) one.drop(count);
        for (auto &one : parts) {
            if (one->read.size() > 1) one->both.drop(count);
            if (one->once) one->codes.drop(count);
        }
    }

    // Where no member leaves: forgets those of which only the states of groups are needed. Returns how many
    // are left. The other parts need them all.
    PyObject *fold(PyObject *) {
        if (others) throw std::invalid_argument("members that states elsewhere need");
        std::vector<uint8_t> needed(static_cast<size_t>(size()), 0);
        for (auto &one : parts) {
            if (one->kind == PICKS)
                one->best.forget_others([&](int64_t member) { needed[static_cast<size_t>(member - base)] = 1; });
            if (!one->once) continue;
            Span<uint8_t> some = flags(*one);
            std::vector<uint8_t> seen(static_cast<size_t>(one->keys.size()), 0);
            for (int64_t place = 0; place < size(); ++place) {
                uint8_t &known = seen[static_cast<size_t>(one->codes.data()[place])];
                if (known || (some.data && !some.data[place])) continue;
                known = needed[static_cast<size_t>(place)] = 1;
            }
        }
        std::vector<int64_t> places, members;
        for (int64_t place = 0; place < size(); ++place) {
            if (!needed[static_cast<size_t>(place)]) continue;
            places.push_back(place);
            members.push_back(base + place);
        }
        auto only = [&](auto &grown) {
            std::remove_reference_t<decltype(grown)> kept;
            for (int64_t place : places) kept.add(grown.data()[place]);
            grown = std::move(kept);
        };
        base += size() - static_cast<int64_t>(places.size());
        for (auto &one : parts) {
            if (one->read.size() > 1) only(one->both);
            if (one->once) only(one->codes);
            if (one->kind == PICKS) one->best.renumber(members, base);
        }
        for (Column &one : columns) one.keep(places);
        only(group);
        return PyLong_FromSize_t(places.size());
    }

    // Adds to groups the states of the sums of groups of others, in place of what they had. Sums of members that count
    // once stay as they are: these are the members' own.
    PyObject *pour(PyObject *args) {
        PyObject *others_, *from_, *to_;
        if (!PyArg_ParseTuple(args, "OOO", &others_, &from_, &to_)) throw Raised();
        Aggregates &given = Owner<Aggregates>::checked(others_);
        Ints from(from_), to(to_);
        to.want(from.size);
        if (given.parts.size() != parts.size() || &given == this) throw std::invalid_argument("groups of other parts");
        for (int64_t i = 0; i < from.size; ++i)
            if (from.data[i] < 0 || to.data[i] < 0) throw std::out_of_range("a group below 0");
        for (size_t p = 0; p < parts.size(); ++p) {
            Part &mine = *parts[p], &other = *given.parts[p];
            if (mine.kind != other.kind) throw std::invalid_argument("groups of other parts");
            if (mine.once) continue;
            auto pour = [&](auto &state, auto &of) {
                for (int64_t i = 0; i < to.size; ++i) state.forget(to.data[i]);
                for (int64_t i = 0; i < to.size; ++i) state.add(to.data[i], of, from.data[i]);
            };
            if (mine.kind == SUMS) pour(mine.totals, other.totals);
            if (mine.kind == MOMENTS) pour(mine.moments, other.moments);
            if (mine.kind == BITS) pour(mine.bits, other.bits);
        }
        Py_RETURN_NONE;
    }

    // Returns the states of the sums of some groups as words, and where those of each group end.
    PyObject *states(PyObject *args) {
        PyObject *groups_;
        if (!PyArg_ParseTuple(args, "O", &groups_)) throw Raised();
        Ints groups(groups_);
        std::vector<int64_t> words, ends;
        for (int64_t i = 0; i < groups.size; ++i) {
            if (groups.data[i] < 0) throw std::out_of_range("a group below 0");
            for (auto &one : parts)
                of_state(*one, [&](auto &state) { state.give(groups.data[i], words); });
            ends.push_back(static_cast<int64_t>(words.size()));
        }
        return Py_BuildValue("NN", handed(words), handed(ends));
    }

    // Takes the states of the sums of some groups in place of what they had.
    PyObject *resume(PyObject *args) {
        PyObject *groups_, *words_, *ends_;
        if (!PyArg_ParseTuple(args, "OOO", &groups_, &words_, &ends_)) throw Raised();
        Ints groups(groups_), words(words_), ends(ends_);
        ends.want(groups.size);
        const int64_t *at = words.data;
        for (int64_t i = 0; i < groups.size; ++i) {
            if (groups.data[i] < 0 || ends.data[i] < at - words.data || ends.data[i] > words.size)
                throw std::out_of_range("states out of order");
            for (auto &one : parts)
                of_state(*one, [&](auto &state) { at = state.take(groups.data[i], at, words.data + ends.data[i]); });
        }
        Py_RETURN_NONE;
    }

    PyObject *count(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(size())); }

    PyObject *begin(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(base)); }

    // The largest number of texts or keys kept for any column or part; they are never forgotten.
    int64_t distinct() const {
        int64_t most = 0;
        for (const Column &one : columns) most = std::max(most, one.codes.size());
        for (const auto &one : parts) most = std::max(most, one->keys.size());
        return most;
    }

    // Returns the addresses of the results at the points, as Arrow's arrays that are there until the
    // next call, 0 for those of `OTHER`; and None, or for each result the bytes that are 1 where it is
    // lost, None if it is nowhere.
    PyObject *found_at(Span<int64_t> events_, Span<int64_t> until_, Span<int64_t> at_) {
        Turns turns(events_, until_, at_, base, groups());
        if (others) at.assign(at_.data, at_.data + until_.size);
        for (auto &one : parts) run(*one, turns);
        clear();
        made.reserve(results.size());
        auto count = static_cast<Py_ssize_t>(results.size());
        PyObject *addresses = PyTuple_New(count), *all = nullptr;
        if (addresses == nullptr) throw Raised();
        std::vector<uint8_t> lost;
        try {
            for (Py_ssize_t i = 0; i < count; ++i) {
                const Result &of = results[static_cast<size_t>(i)];
                unsigned long long address = 0;
                lost.clear();
                if (of.asked != NOTHING) {
                    made.push_back(made_of(of, turns.until.size, lost));
                    address = reinterpret_cast<unsigned long long>(&made.back());
                }
                PyTuple_SetItem(addresses, i, PyLong_FromUnsignedLongLong(address));
                if (lost.empty()) continue;
                if (all == nullptr) {
                    all = PyTuple_New(count);
                    if (all == nullptr) throw Raised();
                    for (Py_ssize_t k = 0; k < count; ++k) PyTuple_SetItem(all, k, Py_NewRef(Py_None));
                }
                const auto *bytes = reinterpret_cast<const char *>(lost.data());
                PyTuple_SetItem(all, i, PyBytes_FromStringAndSize(bytes, static_cast<Py_ssize_t>(lost.size())));
            }
        } catch (...) {
            Py_DECREF(addresses);
            Py_XDECREF(all);
            throw;
        }
        if (all == nullptr) all = Py_NewRef(Py_None);
        return Py_BuildValue("NN", addresses, all);
    }

    // Adds members with their groups, which come one after the other. Returns the results at points, each after the first
    // `until` of them.
    PyObject *enter(PyObject *args) {
        PyObject *values_, *group_, *until_, *at_;
        if (!PyArg_ParseTuple(args, "OOOO", &values_, &group_, &until_, &at_)) throw Raised();
        Ints groups(group_), until(until_), at(at_);
        std::vector<int64_t> events(static_cast<size_t>(groups.size));
        std::iota(events.begin(), events.end(), base + size());
        take_in(given(values_), groups.data, groups.size);
        return found_at({events.data(), groups.size}, until, at);
    }

    PyObject *found(PyObject *args) {
        PyObject *events_, *until_, *at_;
        if (!PyArg_ParseTuple(args, "OOO", &events_, &until_, &at_)) throw Raised();
        Ints events(events_), until(until_), at(at_);
        return found_at(events, until, at);
    }

    // Returns the latest turns of a part whose states are not here, as far as they are needed.
    PyObject *turns(PyObject *args) {
        int number;
        if (!PyArg_ParseTuple(args, "i", &number)) throw Raised();
        const Needed &of = part(number).needed;
        return Py_BuildValue("NNNN", handed(of.events), handed(of.until), handed(at), handed(of.over));
    }

    // Returns the latest moments of a part.
    PyObject *moments(PyObject *args) {
        int number;
        if (!PyArg_ParseTuple(args, "i", &number)) throw Raised();
        const Moments &of = part(number).moments;
        return Py_BuildValue("NNNy#", handed(of.counts), handed(of.lows), handed(of.ends), of.bytes.data(),
                             static_cast<Py_ssize_t>(of.bytes.size()));
    }

    // Returns the arguments of members by their places, as an array capsule.
    PyObject *take(PyObject *args) {
        PyObject *places_;
        int number;
        if (!PyArg_ParseTuple(args, "iO", &number, &places_)) throw Raised();
        Ints places(places_);
        return handed_over(new ArrowArray(column(number).take(places.data, places.size)));
    }

    // Writes the groups of members, by their places.
    PyObject *groups_of(PyObject *args) {
        PyObject *places_, *out_;
        if (!PyArg_ParseTuple(args, "OO", &places_, &out_)) throw Raised();
        Ints places(places_);
        Out out(out_, true);
        out.want(places.size);
        for (int64_t i = 0; i < places.size; ++i) {
            if (places.data[i] < 0 || places.data[i] >= size()) throw std::out_of_range("a member that is not there");
            out.data[i] = group.data()[places.data[i]];
        }
        Py_RETURN_NONE;
    }
};
