// Sequences of single events: finds the matches that end with one of the newest events, event by
// event, without dead ends.
//
// The elements are the nodes of a tree. The last one is its root; each other one hangs on the element
// that it is compared with. No two edges cross, so what hangs on an element, directly or not, is with
// it a range of neighbours: its stretch. Of all ways to fill the stretch around an event, the one that
// begins latest and the one that ends earliest decide whether the event can be in a match. They do not
// depend on each other, since one concerns what is before the event, the other what is after it. An
// event is `Reached` once it has both; so what a search looks up there is part of some match.
#pragma once

#include "probes.h"
#include "reached.h"

class Sequence {
    using Range = Reached::Range;

    // The events of one element, in order, by their number; those before `gone` are forgotten, and
    // those from `done` on are yet to be reached.
    struct List {
        Grown<int64_t> times, rows;
        std::vector<Grown<int64_t>> values;
        std::vector<Grown<uint8_t>> flags;
        std::vector<size_t> compared;
        int64_t gone = 0, done = 0;

        int64_t end() const { return gone + times.size(); }
        int64_t time(int64_t event) const { return times.data()[event - gone]; }
        int64_t row(int64_t event) const { return rows.data()[event - gone]; }
        int64_t value(size_t column, int64_t event) const { return values[column].data()[event - gone]; }
        // Returns whether all that the event is compared by is there.
        bool whole(int64_t event) const {
            for (size_t column : compared)
                if (!flags[column].data()[event - gone]) return false;
            return true;
        }
    };
    // `own op other`, columns of two elements.
    struct Link {
        int64_t op;
        size_t element, own, other, column;
    };
    // How events of one element are found from an event of another: all `equal` columns are, and the
    // value of `own` is within all bounds.
    struct Lookup {
        std::vector<Link> equal, bounds;

        int64_t key(const List &list, int64_t event, bool own) const {
            uint64_t key = 0;
            for (const Link &link : equal) {
                key = key * 0x9e3779b97f4a7c15u;
                key = (key ^ (key >> 32)) + static_cast<uint64_t>(list.value(own ? link.own : link.column, event));
            }
            return static_cast<int64_t>(key);
        }
        int64_t value(const List &list, int64_t event) const {
            return bounds.empty() ? 0 : list.value(bounds.front().own, event);
        }
        Range range(const List &list, int64_t event) const {
            Range range{equal.empty() && bounds.empty(), key(list, event, false)};
            for (const Link &link : bounds) {
                int64_t than = list.value(link.column, event);
                bool none = (link.op == LT && than == INT64_MIN) || (link.op == GT && than == INT64_MAX);
                if (none) return {false, 0, INT64_MAX, INT64_MIN};
                if (link.op == LT || link.op == LE)
                    range.high = std::min(range.high, than - (link.op == LT));
                else
                    range.low = std::max(range.low, than + (link.op == GT));
            }
            return range;
        }
    };
    struct Node {
        explicit Node(int64_t &work) : reached(work) {}

        size_t parent = 0, place = 0;  // its place among those that hang on its parent on that side
        size_t last = 0;               // the last element of its stretch
        std::vector<size_t> before, after;  // what hangs on it
        Lookup lookup, back;                // from the parent's event to its own ones, and back
        std::vector<Link> checks;           // what else has to hold when it is bound
        Reached reached;
        std::vector<Reached> waiting;  // events that have so many of `after`, not the next
        int64_t beyond = 0;            // its stretch must begin after this time
    };

    std::vector<List> lists;
    std::vector<Node> nodes;
    std::vector<size_t> order;  // in which elements are bound; whatever follows a stretch comes first
    std::vector<int64_t> bound, rows, found, ways;  // events of a match, and their rows
    int64_t window = 0, earliest = INT64_MIN / 2, work = 0, most_work = 0;
    size_t most_found = 0;

    int64_t time(size_t element) const { return lists[element].time(bound[element]); }

    // --- reaching ---------------------------------------------------------------

    void reach(size_t element, int64_t event) {
        const List &list = lists[element];
        if (!list.whole(event)) return;
        int64_t now = list.time(event), begin = now;
        const auto &before = nodes[element].before;
        for (auto one = before.rbegin(); one != before.rend(); ++one) {
            Node &node = nodes[*one];
            Reached &from = node.reached;
            begin = from.latest(node.lookup.range(list, event), from.from(now - window), from.from(begin));
            if (begin < now - window) return;
        }
        settle(element, event, begin, now, 0);
    }

    // Takes an event with the first few of what hangs on it afterwards, which end at this time.
    void settle(size_t element, int64_t event, int64_t begin, int64_t end, size_t afterwards) {
        Node &node = nodes[element];
        const List &list = lists[element];
        if (afterwards < node.after.size()) {
            const Lookup &back = nodes[node.after[afterwards]].back;
            node.waiting[afterwards].add(end, begin, back.key(list, event, true), back.value(list, event), event);
            return;
        }
        node.reached.add(end, begin, node.lookup.key(list, event, true), node.lookup.value(list, event), event);
        if (element < node.parent) return;
        Reached &waiting = nodes[node.parent].waiting[node.place];
        size_t first = ways.size();
        int64_t beyond = std::max(end - window, earliest) - 1;
        waiting.each(node.back.range(list, event), waiting.from(beyond + 1), waiting.from(begin), beyond,
                     [&](int64_t way) {
                         ways.push_back(way);
                         return true;
                     });
        while (ways.size() > first) {
            int64_t way = ways.back(), from = waiting.begin(way);
            ways.pop_back();
            waiting.remove(way);
            settle(node.parent, waiting.event(way), from, end, node.place + 1);
        }
    }

    void reach() {
        for (;;) {
            size_t next = lists.size();
            for (size_t e = 0; e + 1 < lists.size(); ++e)
                if (lists[e].done < lists[e].end() &&
                    (next == lists.size() || lists[e].time(lists[e].done) < lists[next].time(lists[next].done)))
                    next = e;
            if (next == lists.size()) return;
            reach(next, lists[next].done++);
        }
    }

    // --- search -----------------------------------------------------------------

    // Bounds the stretches of what hangs on a bound element on one side, so that all fit in from
    // this time on.
    bool limit(const std::vector<size_t> &side, size_t element, int64_t beyond) {
        for (size_t one : side) {
            Node &node = nodes[one];
            node.beyond = beyond;
            if (one == side.back()) break;
            Reached &from = node.reached;
            int64_t end = from.end();
            Range range = node.lookup.range(lists[element], bound[element]);
            int64_t way = from.first(range, from.from(beyond + 1), end, beyond);
            if (way == end) return false;
            beyond = from.ending(way);
        }
        return true;
    }

    bool limit(size_t element) {
        const Node &node = nodes[element];
        return limit(node.after, element, time(element)) && limit(node.before, element, node.beyond);
    }

    void bind(size_t element, int64_t event) {
        bound[element] = event;
        rows[element] = lists[element].row(event);
    }

    // Binds the remaining elements; returns false if a limit is exceeded.
    bool extend(size_t number) {
        if (number == order.size()) {
            if (found.size() >= most_found) return false;
            found.insert(found.end(), rows.begin(), rows.end());
            return true;
        }
        size_t element = order[number];
        Node &node = nodes[element];
        Reached &from = node.reached;
        Range range = node.lookup.range(lists[node.parent], bound[node.parent]);
        int64_t begin = from.from(node.beyond + 1), end = from.from(time(node.last + 1));
        return from.each(range, begin, end, node.beyond, [&](int64_t way) {
            bind(element, from.event(way));
            for (const Link &link : node.checks)
                if (!fits(link)) return work < most_work;
            return work < most_work && (!limit(element) || extend(number + 1));
        });
    }

    bool fits(const Link &link) const {
        return compared(link.op, lists[link.element].value(link.own, bound[link.element]),
                        lists[link.other].value(link.column, bound[link.other]));
    }

    // --- the tree ---------------------------------------------------------------

    void hang(const Ints &parents) {
        size_t count = nodes.size();
        for (size_t e = 0; e + 1 < count; ++e) {
            int64_t parent = parents.data[e];
            if (parent < 0 || parent >= parents.size) throw std::out_of_range("an element that hangs on nothing");
            nodes[e].parent = static_cast<size_t>(parent);
            Node &on = nodes[nodes[e].parent];
            auto &side = e < nodes[e].parent ? on.before : on.after;
            nodes[e].place = side.size();
            side.push_back(e);
        }
        order.clear();
        if (arrange(count - 1, count - 1) != 0 || order.size() != count)
            throw std::out_of_range("elements that hang on each other");
    }

    // Puts an element whose stretch ends with `last` into the order, and then what hangs on it, from
    // right to left. Returns the first element of the stretch.
    size_t arrange(size_t element, size_t last) {
        Node &node = nodes[element];
        node.last = last;
        node.waiting.clear();
        for (size_t i = 0; i < node.after.size(); ++i) node.waiting.emplace_back(work);
        order.push_back(element);
        for (auto one = node.after.rbegin(); one != node.after.rend(); ++one) last = arrange(*one, last) - 1;
        if (last != element) throw std::out_of_range("elements that hang on each other crosswise");
        --last;
        for (auto one = node.before.rbegin(); one != node.before.rend(); ++one) last = arrange(*one, last) - 1;
        return last + 1;
    }

    // Returns the links that a lookup leaves to be checked.
    static std::vector<Link> looked_up(Lookup &lookup, const std::vector<Link> &links) {
        std::vector<Link> rest;
        auto bounds = [](const Link &link) { return link.op != EQ && link.op != NE; };
        auto alike = [&](const Link &link) {
            return std::count_if(links.begin(), links.end(),
                                 [&](const Link &one) { return bounds(one) && one.own == link.own; });
        };
        const Link *best = nullptr;
        for (const Link &link : links)
            if (bounds(link) && (best == nullptr || alike(link) > alike(*best))) best = &link;
        for (const Link &link : links) {
            if (link.op == EQ)
                lookup.equal.push_back(link);
            else if (bounds(link) && link.own == best->own)
                lookup.bounds.push_back(link);
            else
                rest.push_back(link);
        }
        return rest;
    }

    // Returns whether lookups decide all links.
    bool tie(const Ints &links) {
        bool decided = true;
        size_t count = nodes.size();
        std::vector<std::vector<Link>> from(count), back(count);
        std::vector<size_t> place(count);
        for (size_t i = 0; i < count; ++i) place[order[i]] = i;
        for (int64_t i = 0; i + 4 < links.size; i += 5) {
            const int64_t *d = links.data + i;
            Link link{d[0], static_cast<size_t>(d[1]), static_cast<size_t>(d[2]), static_cast<size_t>(d[3]),
                      static_cast<size_t>(d[4])};
            if (d[0] < LT || d[0] > NE || link.element >= count || link.other >= count ||
                link.element == link.other || link.own >= lists[link.element].values.size() ||
                link.column >= lists[link.other].values.size())
                throw std::out_of_range("a link to nowhere");
            lists[link.element].compared.push_back(link.own);
            lists[link.other].compared.push_back(link.column);
            if (link.element + 1 < count && nodes[link.element].parent == link.other)
                from[link.element].push_back(link);
            else if (link.other + 1 < count && nodes[link.other].parent == link.element)
                back[link.other].push_back(link);
            else
                nodes[place[link.element] < place[link.other] ? link.other : link.element].checks.push_back(link);
        }
        for (size_t e = 0; e + 1 < count; ++e) {
            Node &node = nodes[e];
            decided = looked_up(node.back, back[e]).empty() && decided;
            for (const Link &link : looked_up(node.lookup, from[e])) node.checks.push_back(link);
            decided = decided && node.checks.empty();
            // Several values are mixed into one key, which hardly ever is that of others, too.
            const std::vector<Link> &equal = node.lookup.equal;
            if (equal.size() > 1) node.checks.insert(node.checks.end(), equal.begin(), equal.end());
        }
        for (List &list : lists) {
            std::sort(list.compared.begin(), list.compared.end());
            list.compared.erase(std::unique(list.compared.begin(), list.compared.end()), list.compared.end());
        }
        return decided;
    }

  public:
    // Arguments: for each element the one on which it hangs; links of op, element, column, other
    // element and its column; the number of columns of each element; the window.
    // Returns whether lookups decide all links.
    PyObject *configure(PyObject *args) {
        PyObject *parents_, *links_, *widths_;
        long long window_;
        if (!PyArg_ParseTuple(args, "OOOL", &parents_, &links_, &widths_, &window_)) throw Raised();
        Ints parents(parents_), links(links_), widths(widths_);
        widths.want(parents.size);
        if (parents.size == 0 || window_ < 0) throw std::out_of_range("a sequence without an end");
        window = window_;
        auto count = static_cast<size_t>(parents.size);
        lists = std::vector<List>(count);
        nodes.clear();
        for (size_t i = 0; i < count; ++i) nodes.emplace_back(work);
        bound.assign(count, 0);
        rows.assign(count, 0);
        for (size_t e = 0; e < count; ++e) {
            lists[e].values.resize(static_cast<size_t>(std::max<int64_t>(widths.data[e], 0)));
            lists[e].flags.resize(lists[e].values.size());
        }
        hang(parents);
        return PyBool_FromLong(tie(links));
    }

    // Appends events of an element, in order: times, rows, and for each column values and flags.
    PyObject *append(PyObject *args) {
        long long element;
        PyObject *times_, *rows_, *columns_;
        if (!PyArg_ParseTuple(args, "LOOO", &element, &times_, &rows_, &columns_)) throw Raised();
        if (element < 0 || element >= static_cast<int64_t>(lists.size()))
            throw std::out_of_range("an element that is not there");
        List &own = lists[static_cast<size_t>(element)];
        Ints times(times_), rows(rows_);
        rows.want(times.size);
        Py_ssize_t columns = PyTuple_Size(columns_);
        if (columns < 0) throw Raised();
        if (static_cast<size_t>(columns) != own.values.size())
            throw std::out_of_range("columns of another element");
        std::vector<std::pair<Ints, Bytes>> given;
        for (Py_ssize_t i = 0; i < columns; ++i) {
            PyObject *values_, *flags_;
            if (!PyArg_ParseTuple(PyTuple_GetItem(columns_, i), "OO", &values_, &flags_)) throw Raised();
            given.emplace_back(Ints(values_), Bytes(flags_));
            given.back().first.want(times.size);
            given.back().second.want(times.size);
        }
        own.times.add(times.data, times.size);
        own.rows.add(rows.data, times.size);
        for (size_t i = 0; i < given.size(); ++i) {
            const Bytes &flags = given[i].second;
            own.values[i].add(given[i].first.data, times.size);
            if (flags.data)
                own.flags[i].add(flags.data, times.size);
            else
                own.flags[i].add(times.size, 1);
        }
        Py_RETURN_NONE;
    }

    // Finds the matches whose last event is one of the newest `ends`; returns their number, or None if
    // that takes more than `most_work`, or there are more than `most` matches.
    PyObject *search(PyObject *args) {
        long long ends, work_, most;
        if (!PyArg_ParseTuple(args, "LLL", &ends, &work_, &most)) throw Raised();
        if (lists.empty()) throw std::out_of_range("a sequence without an end");
        const List &last = lists.back();
        if (ends < 0 || ends > last.times.size()) throw std::out_of_range("more events than there are");
        reach();
        auto count = static_cast<int64_t>(lists.size());
        most_work = work + work_, most_found = static_cast<size_t>(std::min<int64_t>(most, INT64_MAX / count) * count);
        found.clear();
        for (int64_t event = last.end() - ends; event < last.end(); ++event) {
            if (!last.whole(event)) continue;
            bind(lists.size() - 1, event);
            nodes.back().beyond = std::max(last.time(event) - window, earliest) - 1;
            if (limit(lists.size() - 1) && !extend(1)) {
                std::vector<int64_t>().swap(found);
                Py_RETURN_NONE;
            }
        }
        return PyLong_FromSize_t(found.size() / lists.size());
    }

    // Writes the rows of the matches found, element by element, counted from `gone`.
    PyObject *take(PyObject *args) {
        PyObject *out_;
        long long gone;
        if (!PyArg_ParseTuple(args, "OL", &out_, &gone)) throw Raised();
        Out out(out_, true);
        out.want(static_cast<int64_t>(found.size()));
        size_t count = lists.empty() ? 0 : found.size() / lists.size();
        for (size_t e = 0; e < lists.size(); ++e)
            for (size_t i = 0; i < count; ++i) out.data[e * count + i] = found[i * lists.size() + e] - gone;
        std::vector<int64_t>().swap(found);
        Py_RETURN_NONE;
    }

    // Returns how much was looked at so far.
    PyObject *looked_at(PyObject *) { return PyLong_FromLongLong(work); }

    // Forgets events before a time.
    PyObject *forget(PyObject *args) {
        long long earliest_;
        if (!PyArg_ParseTuple(args, "L", &earliest_)) throw Raised();
        earliest = std::max<int64_t>(earliest, earliest_);
        for (List &own : lists) {
            const int64_t *times = own.times.data();
            int64_t count = std::lower_bound(times, times + own.times.size(), earliest) - times;
            own.times.drop(count);
            own.rows.drop(count);
            for (auto &values : own.values) values.drop(count);
            for (auto &flags : own.flags) flags.drop(count);
            own.gone += count;
            own.done = std::max(own.done, own.gone);
        }
        for (Node &node : nodes) {
            node.reached.forget(earliest);
            for (Reached &one : node.waiting) one.forget(earliest);
        }
        Py_RETURN_NONE;
    }
};
