// Conditions over a stored row and a probe that no comparison of columns stands for: lists of steps,
// each computed for a block of pairs.
//
// The numbers of reals have the order of the reals (numbers.h); the step `real` makes reals of them.
// Where a step has no value although its operands have one, there may be a fault. Whether it counts
// depends on the other conditions, so the search ends with ArithmeticError. That a real becomes
// infinite ends it, too.
#pragma once

#include "binding.h"
#include "blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

// The operations, in the order of `FormulaStep` in Python. A step takes two values or one.
enum class Step : int64_t {
    real, widened,
    plus, minus, times, quotient, rest, opposite, magnitude, least, greatest, bits_of_both, bits_of_any,
    real_plus, real_minus, real_times, real_quotient, real_opposite, real_magnitude, root, real_least, real_greatest,
    less, equal, greater, at_least, at_most, unlike,
    real_less, real_equal, real_greater, real_at_least, real_at_most, real_unlike,
    both, any, negation, missing, there, first_there, either, choice,
    steps,
};

namespace steps {

constexpr int64_t narrow = 0x7fffffff;  // half of the range in which all products and quotients are exact

WIDEST inline bool narrows(const int64_t *a, const int64_t *b, int64_t count) {
    uint64_t beyond = 0;
    for (int64_t i = 0; i < count; ++i) {
        beyond |= static_cast<uint64_t>(a[i]) + narrow > 2 * narrow;
        beyond |= static_cast<uint64_t>(b[i]) + narrow > 2 * narrow;
    }
    return beyond == 0;
}

// Functions of integers return whether a value is missing; they wrap around there.
#define OF_WHOLE(NAME, VALUE, WRONG)                                                                 \
    WIDEST inline bool NAME(const int64_t *a, const int64_t *b, int64_t *out, int64_t count) {       \
        uint64_t wrong = 0;                                                                          \
        for (int64_t i = 0; i < count; ++i) {                                                        \
            [[maybe_unused]] auto x = static_cast<uint64_t>(a[i]), y = static_cast<uint64_t>(b[i]);  \
            uint64_t value = VALUE;                                                                  \
            wrong |= WRONG;                                                                          \
            out[i] = static_cast<int64_t>(value);                                                    \
        }                                                                                            \
        return wrong >> 63;                                                                          \
    }
OF_WHOLE(plus, x + y, (x ^ value) & (y ^ value))
OF_WHOLE(minus, x - y, (x ^ y) & (x ^ value))
OF_WHOLE(opposite, 0 - x, x & value)
OF_WHOLE(magnitude, a[i] < 0 ? 0 - x : x, value)
OF_WHOLE(bits_of_both, x & y, 0)
OF_WHOLE(bits_of_any, x | y, 0)
OF_WHOLE(narrow_times, x * y, 0)
#undef OF_WHOLE

// Returns whether two integers have no product of 64 bits.
inline bool overflows(int64_t a, int64_t b) {
    if (a == 0 || b == 0) return false;
    if (a == -1 || b == -1) return std::min(a, b) == INT64_MIN;
    auto product = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return product / b != a;
}

inline bool times(const int64_t *a, const int64_t *b, int64_t *out, int64_t count) {
    narrow_times(a, b, out, count);
    bool wrong = false;
    if (!narrows(a, b, count))
        for (int64_t i = 0; i < count; ++i) wrong |= overflows(a[i], b[i]);
    return wrong;
}

// Divides as reals, whose quotients have enough digits here; a division by zero becomes one by 1.
WIDEST inline bool narrow_quotient(const int64_t *a, const int64_t *b, int64_t *out, int64_t count) {
    uint64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
        auto x = static_cast<int32_t>(a[i]), y = static_cast<int32_t>(b[i]);
        wrong |= y == 0;
        y = y == 0 ? 1 : y;
        out[i] = static_cast<int32_t>(static_cast<double>(x) / static_cast<double>(y));
    }
    return wrong != 0;
}

WIDEST inline void rests(const int64_t *a, const int64_t *b, const int64_t *quotients, int64_t *out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i] - quotients[i] * b[i];
}

inline bool divided(bool rest, const int64_t *a, const int64_t *b, int64_t *out, int64_t count) {
    bool wrong = false;
    if (narrows(a, b, count)) {
        wrong = narrow_quotient(a, b, out, count);
        if (rest) rests(a, b, out, out, count);
        return wrong;
    }
    for (int64_t i = 0; i < count; ++i) {
        bool none = b[i] == 0 || (a[i] == INT64_MIN && b[i] == -1);
        wrong |= none;
        int64_t by = none ? 1 : b[i];
        out[i] = rest ? a[i] % by : a[i] / by;
    }
    return wrong;
}

#define OF_REAL(NAME, VALUE)                                                                         \
    WIDEST inline bool NAME(const double *a, const double *b, double *out, int64_t count) {          \
        uint64_t wrong = 0;                                                                          \
        for (int64_t i = 0; i < count; ++i) {                                                        \
            double value = VALUE;                                                                    \
            wrong |= !(value - value == 0);                                                          \
            out[i] = value;                                                                          \
        }                                                                                            \
        return wrong != 0;                                                                           \
    }
OF_REAL(real_plus, a[i] + b[i])
OF_REAL(real_minus, a[i] - b[i])
OF_REAL(real_times, a[i] * b[i])
OF_REAL(real_quotient, a[i] / b[i])
#undef OF_REAL

inline bool root(const double *a, double *out, int64_t count) {
    bool wrong = false;
    for (int64_t i = 0; i < count; ++i) {
        wrong |= !(a[i] >= 0 && a[i] - a[i] == 0);
        out[i] = std::sqrt(a[i]);
    }
    return wrong;
}

template <typename T, typename Out, typename Of>
inline void each(const T *a, const T *b, Out *out, int64_t count, Of of) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(of(a[i], b[i]));
}

#define COMPARISON(NAME, T, OP)                                                                      \
    WIDEST inline void NAME(const T *a, const T *b, int64_t *out, int64_t count) {                   \
        for (int64_t i = 0; i < count; ++i) out[i] = a[i] OP b[i];                                   \
    }
#define COMPARISONS(PREFIX, T)                                                                       \
    COMPARISON(PREFIX##less, T, <)                                                                   \
    COMPARISON(PREFIX##equal, T, ==)                                                                 \
    COMPARISON(PREFIX##greater, T, >)                                                                \
    COMPARISON(PREFIX##at_least, T, >=)                                                              \
    COMPARISON(PREFIX##at_most, T, <=)                                                               \
    COMPARISON(PREFIX##unlike, T, !=)
COMPARISONS(, int64_t)
COMPARISONS(real_, double)
#undef COMPARISONS
#undef COMPARISON

WIDEST inline void choice(const int64_t *decides, const int64_t *a, const int64_t *b, int64_t *out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = decides[i] ? a[i] : b[i];
}

WIDEST inline void reals(const int64_t *a, double *out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        int64_t bits = a[i] < 0 ? a[i] ^ INT64_MAX : a[i];
        std::memcpy(out + i, &bits, 8);
    }
}

}  // namespace steps

class Formula {
    struct Numbers {
        Ints values;
        Bytes there;
    };
    struct Made {
        Step step;
        size_t a, b;
    };
    // The values of a block: its own, or those of a column.
    struct Values {
        union {
            int64_t own[block];
            double own_real[block];
        };
        uint8_t own_there[block];
        const int64_t *whole = own;
        const double *real = own_real;
        const uint8_t *there = nullptr;  // missing if all values are there
        Values() {}
    };
    std::vector<Numbers> theirs, ours;
    std::vector<Made> made;
    std::unique_ptr<Values[]> values;  // of their columns, of ours, of the steps

    static void take(std::vector<Numbers> &into, PyObject *from, int64_t rows) {
        if (!PyTuple_Check(from)) throw std::invalid_argument("columns that are no tuple");
        for (Py_ssize_t i = 0; i < PyTuple_Size(from); ++i) {
            PyObject *values, *there;
            if (!PyArg_ParseTuple(PyTuple_GetItem(from, i), "OO", &values, &there)) throw Raised();
            into.push_back({Ints(values), Bytes(there)});
            if (into.back().values.data == nullptr) throw std::invalid_argument("a column without values");
            into.back().values.want(rows);
            into.back().there.want(rows);
        }
    }

    // Which rows or probes a block has: consecutive ones, one for all, or some.
    template <typename Place>
    static void load(const Numbers &of, Values &into, int64_t count, Place place) {
        for (int64_t k = 0; k < count; ++k) into.own[k] = of.values.data[place(k)];
        into.there = nullptr;
        if (of.there.data == nullptr) return;
        for (int64_t k = 0; k < count; ++k) into.own_there[k] = of.there.data[place(k)];
        into.there = into.own_there;
    }

    static bool is(const Values &of, int64_t k) { return of.there == nullptr || of.there[k]; }

    // Sets which values of a strict step are there: those with all operands.
    static void joined(const Values &a, const Values &b, Values &out, int64_t count) {
        out.there = nullptr;
        if (a.there == nullptr && b.there == nullptr) return;
        for (int64_t k = 0; k < count; ++k) out.own_there[k] = is(a, k) && is(b, k);
        out.there = out.own_there;
    }

    // Computes the values of a step that takes what is there and what is not; false if it is another step.
    static bool tolerant(Step step, const Values &a, const Values &b, Values &out, int64_t count) {
        bool flagged = a.there != nullptr || b.there != nullptr;
        auto choose = [&](const auto *x, const auto *y, auto *to, bool most) {
            for (int64_t k = 0; k < count; ++k) {
                bool first = !is(b, k) || (is(a, k) && (most ? x[k] >= y[k] : x[k] <= y[k]));
                to[k] = first ? x[k] : y[k];
                if (flagged) out.own_there[k] = is(a, k) || is(b, k);
            }
            out.there = flagged ? out.own_there : nullptr;
        };
        auto decide = [&](bool decisive) {
            for (int64_t k = 0; k < count; ++k) {
                bool x = is(a, k) ? a.whole[k] != 0 : !decisive, y = is(b, k) ? b.whole[k] != 0 : !decisive;
                out.own[k] = decisive ? x | y : x & y;
                if (flagged) out.own_there[k] = (is(a, k) && is(b, k)) || (out.own[k] != 0) == decisive;
            }
            out.there = flagged ? out.own_there : nullptr;
        };
        switch (step) {
            case Step::least: choose(a.whole, b.whole, out.own, false); return true;
            case Step::greatest: choose(a.whole, b.whole, out.own, true); return true;
            case Step::real_least: choose(a.real, b.real, out.own_real, false); return true;
            case Step::real_greatest: choose(a.real, b.real, out.own_real, true); return true;
            case Step::both: decide(false); return true;
            case Step::any: decide(true); return true;
            case Step::missing:
            case Step::there:
                for (int64_t k = 0; k < count; ++k) out.own[k] = is(a, k) == (step == Step::there);
                out.there = nullptr;
                return true;
            case Step::first_there:
                for (int64_t k = 0; k < count; ++k) {
                    out.own[k] = is(a, k) ? a.whole[k] : b.whole[k];
                    out.own_there[k] = is(a, k) || is(b, k);
                }
                out.there = out.own_there;
                return true;
            default: return false;
        }
    }

    // Takes one of two values, the first where a condition is true.
    static void choose(const Values &condition, const Values &first, const Values &second, Values &out, int64_t count) {
        steps::choice(condition.whole, first.whole, second.whole, out.own, count);
        out.there = nullptr;
        if (condition.there == nullptr && first.there == nullptr && second.there == nullptr) return;
        for (int64_t k = 0; k < count; ++k) {
            bool chosen = condition.whole[k] && is(condition, k);
            out.own[k] = chosen ? first.whole[k] : second.whole[k];
            out.own_there[k] = is(chosen ? first : second, k);
        }
        out.there = out.own_there;
    }

    // Computes a strict step; returns whether a value is missing.
    static bool strict(Step step, const Values &a, const Values &b, Values &out, int64_t from, int64_t count) {
        const int64_t *x = a.whole + from, *y = b.whole + from;
        const double *r = a.real + from, *s = b.real + from;
        int64_t *to = out.own + from;
        double *real = out.own_real + from;
        switch (step) {
            case Step::real: steps::reals(x, real, count); return false;
            case Step::widened: steps::each(x, x, real, count, [](auto one, auto) { return one; }); return false;
            case Step::plus: return steps::plus(x, y, to, count);
            case Step::minus: return steps::minus(x, y, to, count);
            case Step::times: return steps::times(x, y, to, count);
            case Step::quotient: return steps::divided(false, x, y, to, count);
            case Step::rest: return steps::divided(true, x, y, to, count);
            case Step::opposite: return steps::opposite(x, y, to, count);
            case Step::magnitude: return steps::magnitude(x, y, to, count);
            case Step::bits_of_both: return steps::bits_of_both(x, y, to, count);
            case Step::bits_of_any: return steps::bits_of_any(x, y, to, count);
            case Step::real_plus: return steps::real_plus(r, s, real, count);
            case Step::real_minus: return steps::real_minus(r, s, real, count);
            case Step::real_times: return steps::real_times(r, s, real, count);
            case Step::real_quotient: return steps::real_quotient(r, s, real, count);
            case Step::real_opposite: steps::each(r, r, real, count, [](double one, double) { return -one; }); return false;
            case Step::real_magnitude:
                steps::each(r, r, real, count, [](double one, double) { return std::fabs(one); });
                return false;
            case Step::root: return steps::root(r, real, count);
            case Step::less: steps::less(x, y, to, count); return false;
            case Step::equal: steps::equal(x, y, to, count); return false;
            case Step::greater: steps::greater(x, y, to, count); return false;
            case Step::at_least: steps::at_least(x, y, to, count); return false;
            case Step::at_most: steps::at_most(x, y, to, count); return false;
            case Step::unlike: steps::unlike(x, y, to, count); return false;
            case Step::real_less: steps::real_less(r, s, to, count); return false;
            case Step::real_equal: steps::real_equal(r, s, to, count); return false;
            case Step::real_greater: steps::real_greater(r, s, to, count); return false;
            case Step::real_at_least: steps::real_at_least(r, s, to, count); return false;
            case Step::real_at_most: steps::real_at_most(r, s, to, count); return false;
            case Step::real_unlike: steps::real_unlike(r, s, to, count); return false;
            case Step::negation: steps::each(x, x, to, count, [](int64_t one, int64_t) { return one == 0; }); return false;
            default: throw std::out_of_range("there is no such step");
        }
    }

    static void follow(Step step, const Values &a, const Values &b, Values &out, int64_t count) {
        if (tolerant(step, a, b, out, count)) return;
        joined(a, b, out, count);
        bool wrong = strict(step, a, b, out, 0, count);
        if (wrong && out.there != nullptr) {  // a NULL is any number
            wrong = false;
            for (int64_t k = 0; k < count; ++k)
                if (out.there[k]) wrong |= strict(step, a, b, out, k, 1);
        }
        if (!wrong) return;
        PyErr_SetString(PyExc_ArithmeticError, "a formula has no value for a pair");
        throw Raised();
    }

    // Follows all steps; the last one says which pairs are kept.
    const Values &followed(int64_t count) {
        size_t at = theirs.size() + ours.size();
        for (const Made &one : made) {
            if (one.step == Step::choice) {
                const Made &both = made[one.b - theirs.size() - ours.size()];
                choose(values[one.a], values[both.a], values[both.b], values[at], count);
            } else if (one.step != Step::either) {
                follow(one.step, values[one.a], values[one.b], values[at], count);
            }
            ++at;
        }
        return values[at - 1];
    }

    void keep(int64_t count, uint8_t *kept) {
        const Values &found = followed(count);
        for (int64_t k = 0; k < count; ++k) kept[k] &= found.whole[k] && is(found, k);
    }

  public:
    Formula(PyObject *of, int64_t rows, int64_t probes) {
        PyObject *steps_, *theirs_, *ours_;
        if (!PyArg_ParseTuple(of, "OOO", &steps_, &theirs_, &ours_)) throw Raised();
        take(theirs, theirs_, rows);
        take(ours, ours_, probes);
        Ints all(steps_);
        if (all.size == 0 || all.size % 3 != 0) throw std::invalid_argument("steps that are no triples");
        size_t columns = theirs.size() + ours.size();
        for (int64_t i = 0; i < all.size; i += 3) {
            Made one{static_cast<Step>(all.data[i]), static_cast<size_t>(all.data[i + 1]), static_cast<size_t>(all.data[i + 2])};
            if (one.step < Step::real || one.step >= Step::steps) throw std::out_of_range("there is no such step");
            size_t before = columns + made.size();
            if (one.a >= before || one.b >= before) throw std::out_of_range("a step before its operands");
            auto is_either = [&](size_t of) { return of >= columns && made[of - columns].step == Step::either; };
            if (is_either(one.a) || is_either(one.b) != (one.step == Step::choice))
                throw std::out_of_range("a choice without two values");
            made.push_back(one);
        }
        if (made.back().step == Step::either) throw std::out_of_range("two values without a choice");
        values = std::make_unique<Values[]>(columns + made.size());
    }

    // Takes one probe, for blocks of up to `count` rows.
    void meet(int64_t probe, int64_t count) {
        for (size_t i = 0; i < ours.size(); ++i)
            load(ours[i], values[theirs.size() + i], count, [=](int64_t) { return probe; });
    }

    // Marks which of some consecutive rows, from a place on, fit the probe that was met last.
    void consecutive(int64_t place, int64_t count, uint8_t *kept) {
        for (size_t i = 0; i < theirs.size(); ++i) {
            values[i].whole = theirs[i].values.data + place;
            values[i].there = theirs[i].there.data ? theirs[i].there.data + place : nullptr;
        }
        keep(count, kept);
    }

    // Marks which of some pairs of a probe and a row fit; the rows' places count from `base`.
    void pairs(const int64_t *who, const int64_t *row, int64_t base, int64_t count, uint8_t *kept) {
        for (size_t i = 0; i < theirs.size(); ++i) {
            values[i].whole = values[i].own;
            load(theirs[i], values[i], count, [=](int64_t k) { return row[k] - base; });
        }
        for (size_t i = 0; i < ours.size(); ++i)
            load(ours[i], values[theirs.size() + i], count, [=](int64_t k) { return who[k]; });
        keep(count, kept);
    }
};
