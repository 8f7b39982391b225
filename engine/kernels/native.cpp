// Defines the module `native`; `native.pyi` documents its interface, with types and meanings.
#include "aggregates.h"
#include "automaton.h"
#include "chains.h"
#include "codes.h"
#include "contents.h"
#include "intake.h"
#include "intervals.h"
#include "keys.h"
#include "latest.h"
#include "numbers.h"
#include "objects.h"
#include "reals.h"
#include "rows.h"
#include "runs.h"
#include "scan.h"
#include "sequence.h"
#include "sessions.h"
#include "sorting.h"
#include "subsets.h"
#include "taken.h"
#include "totals.h"
#include "windows.h"

// GCC mistakes the call of a constant pointer to a member for type punning.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstrict-aliasing"
#endif
template <typename T, auto method>
static PyObject *of(PyObject *self, PyObject *args) {
    return guarded([&] { return (Owner<T>::of(self).*method)(args); });
}

template <PyObject *(*function)(PyObject *)>
static PyObject *alone(PyObject *, PyObject *args) {
    return guarded([&] { return function(args); });
}

static PyMethodDef of_chains[] = {
    {"append", of<Chains, &Chains::append>, METH_VARARGS, nullptr},
    {"drop", of<Chains, &Chains::drop>, METH_VARARGS, nullptr},
    {"latest", of<Chains, &Chains::latest>, METH_VARARGS, nullptr},
    {"previous", of<Chains, &Chains::previous>, METH_VARARGS, nullptr},
    {"probe", of<Chains, &Chains::probe>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_runs[] = {
    {"append", of<Runs, &Runs::append>, METH_VARARGS, nullptr},
    {"drop", of<Runs, &Runs::drop>, METH_VARARGS, nullptr},
    {"probe", of<Runs, &Runs::probe>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_codes[] = {
    {"among", of<Codes, &Codes::among>, METH_VARARGS, nullptr},
    {"of_values", of<Codes, &Codes::of_values>, METH_VARARGS, nullptr},
    {"texts", of<Codes, &Codes::texts>, METH_VARARGS, nullptr},
    {"count", of<Codes, &Codes::count>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_intervals[] = {
    {"configure", of<Intervals, &Intervals::configure>, METH_VARARGS, nullptr},
    {"find", of<Intervals, &Intervals::find>, METH_VARARGS, nullptr},
    {"take", of<Intervals, &Intervals::take>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_rows[] = {
    {"configure", of<Rows, &Rows::configure>, METH_VARARGS, nullptr},
    {"append", of<Rows, &Rows::append>, METH_VARARGS, nullptr},
    {"judge", of<Rows, &Rows::judge>, METH_VARARGS, nullptr},
    {"run", of<Rows, &Rows::run>, METH_VARARGS, nullptr},
    {"take", of<Rows, &Rows::take>, METH_VARARGS, nullptr},
    {"forget", of<Rows, &Rows::forget>, METH_NOARGS, nullptr},
    {"retain", of<Rows, &Rows::retain>, METH_VARARGS, nullptr},
    {"kept", of<Rows, &Rows::kept>, METH_VARARGS, nullptr},
    {"places", of<Rows, &Rows::places>, METH_VARARGS, nullptr},
    {"resume", of<Rows, &Rows::resume>, METH_VARARGS, nullptr},
    {"count", of<Rows, &Rows::count>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_totals[] = {
    {"run", of<Totals, &Totals::run>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_keys[] = {
    {"configure", of<Keys, &Keys::configure>, METH_VARARGS, nullptr},
    {"numbers", of<Keys, &Keys::numbers>, METH_VARARGS, nullptr},
    {"take", of<Keys, &Keys::take>, METH_VARARGS, nullptr},
    {"count", of<Keys, &Keys::count>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_aggregates[] = {
    {"configure", of<Aggregates, &Aggregates::configure>, METH_VARARGS, nullptr},
    {"add", of<Aggregates, &Aggregates::add>, METH_VARARGS, nullptr},
    {"enter", of<Aggregates, &Aggregates::enter>, METH_VARARGS, nullptr},
    {"found", of<Aggregates, &Aggregates::found>, METH_VARARGS, nullptr},
    {"turns", of<Aggregates, &Aggregates::turns>, METH_VARARGS, nullptr},
    {"moments", of<Aggregates, &Aggregates::moments>, METH_VARARGS, nullptr},
    {"take", of<Aggregates, &Aggregates::take>, METH_VARARGS, nullptr},
    {"fold", of<Aggregates, &Aggregates::fold>, METH_NOARGS, nullptr},
    {"states", of<Aggregates, &Aggregates::states>, METH_VARARGS, nullptr},
    {"resume", of<Aggregates, &Aggregates::resume>, METH_VARARGS, nullptr},
    {"pour", of<Aggregates, &Aggregates::pour>, METH_VARARGS, nullptr},
    {"groups", of<Aggregates, &Aggregates::groups_of>, METH_VARARGS, nullptr},
    {"count", of<Aggregates, &Aggregates::count>, METH_NOARGS, nullptr},
    {"base", of<Aggregates, &Aggregates::begin>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_windows[] = {
    {"enter", of<Windows, &Windows::enter>, METH_VARARGS, nullptr},
    {"found", of<Windows, &Windows::found>, METH_VARARGS, nullptr},
    {"settle", of<Windows, &Windows::settle>, METH_VARARGS, nullptr},
    {"count", of<Windows, &Windows::count>, METH_NOARGS, nullptr},
    {"held", of<Windows, &Windows::held>, METH_VARARGS, nullptr},
    {"ends", of<Windows, &Windows::ends>, METH_VARARGS, nullptr},
    {"move", of<Windows, &Windows::move>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_last_rows[] = {
    {"enter", of<LastRows, &LastRows::enter>, METH_VARARGS, nullptr},
    {"found", of<LastRows, &LastRows::found>, METH_VARARGS, nullptr},
    {"settle", of<LastRows, &LastRows::settle>, METH_VARARGS, nullptr},
    {"count", of<LastRows, &LastRows::count>, METH_NOARGS, nullptr},
    {"held", of<LastRows, &LastRows::held>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_automaton[] = {
    {"configure", of<Automaton, &Automaton::configure>, METH_VARARGS, nullptr},
    {"advance", of<Automaton, &Automaton::advance>, METH_VARARGS, nullptr},
    {"certain", of<Automaton, &Automaton::certain>, METH_VARARGS, nullptr},
    {"until", of<Automaton, &Automaton::until>, METH_VARARGS, nullptr},
    {"take", of<Automaton, &Automaton::take>, METH_VARARGS, nullptr},
    {"forget", of<Automaton, &Automaton::forget>, METH_VARARGS, nullptr},
    {"retain", of<Automaton, &Automaton::retain>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_subsets[] = {
    {"configure", of<Subsets, &Subsets::configure>, METH_VARARGS, nullptr},
    {"advance", of<Subsets, &Subsets::advance>, METH_VARARGS, nullptr},
    {"certain", of<Subsets, &Subsets::certain>, METH_VARARGS, nullptr},
    {"until", of<Subsets, &Subsets::until>, METH_VARARGS, nullptr},
    {"take", of<Subsets, &Subsets::take>, METH_VARARGS, nullptr},
    {"forget", of<Subsets, &Subsets::forget>, METH_VARARGS, nullptr},
    {"retain", of<Subsets, &Subsets::retain>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_sequence[] = {
    {"configure", of<Sequence, &Sequence::configure>, METH_VARARGS, nullptr},
    {"append", of<Sequence, &Sequence::append>, METH_VARARGS, nullptr},
    {"search", of<Sequence, &Sequence::search>, METH_VARARGS, nullptr},
    {"take", of<Sequence, &Sequence::take>, METH_VARARGS, nullptr},
    {"looked_at", of<Sequence, &Sequence::looked_at>, METH_NOARGS, nullptr},
    {"forget", of<Sequence, &Sequence::forget>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_sessions[] = {
    {"configure", of<Sessions, &Sessions::configure>, METH_VARARGS, nullptr},
    {"add", of<Sessions, &Sessions::add>, METH_VARARGS, nullptr},
    {"over", of<Sessions, &Sessions::over>, METH_VARARGS, nullptr},
    {"take", of<Sessions, &Sessions::take>, METH_VARARGS, nullptr},
    {"latest", of<Sessions, &Sessions::latest>, METH_VARARGS, nullptr},
    {"put_back", of<Sessions, &Sessions::put_back>, METH_NOARGS, nullptr},
    {"earliest", of<Sessions, &Sessions::earliest>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_spells[] = {
    {"add", of<Spells, &Spells::add>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_last_of_keys[] = {
    {"configure", of<LastOfKeys, &LastOfKeys::configure>, METH_VARARGS, nullptr},
    {"add", of<LastOfKeys, &LastOfKeys::add>, METH_VARARGS, nullptr},
    {"count", of<LastOfKeys, &LastOfKeys::count>, METH_NOARGS, nullptr},
    {"held", of<LastOfKeys, &LastOfKeys::held>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef of_objects[] = {
    {"configure", of<Objects, &Objects::configure>, METH_VARARGS, nullptr},
    {"read", of<Objects, &Objects::read>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyMethodDef functions[] = {
    {"apart", alone<apart>, METH_VARARGS, nullptr},
    {"lexsort", alone<lexsort>, METH_VARARGS, nullptr},
    {"ordered", alone<ordered>, METH_VARARGS, nullptr},
    {"scan", alone<scan>, METH_VARARGS, nullptr},
    {"places", alone<places>, METH_VARARGS, nullptr},
    {"real", alone<real>, METH_VARARGS, nullptr},
    {"taken", alone<taken>, METH_VARARGS, nullptr},
    {"inside", alone<inside>, METH_VARARGS, nullptr},
    {"sound", alone<sound>, METH_VARARGS, nullptr},
    {"contents", alone<contents>, METH_VARARGS, nullptr},
    {"late", alone<late>, METH_VARARGS, nullptr},
    {"times", alone<times>, METH_VARARGS, nullptr},
    {"keys", alone<keys>, METH_VARARGS, nullptr},
    {"numbers", alone<numbers>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "native", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr,
};

PyMODINIT_FUNC PyInit_native() {
    PyObject *module = PyModule_Create(&definition);
    if (module == nullptr) return nullptr;
#define NAMED "seustream.engine.kernels.native."
    if (Owner<Chains>::add(module, "Chains", NAMED "Chains", of_chains) != 0 ||
        Owner<Runs>::add(module, "Runs", NAMED "Runs", of_runs) != 0 ||
        Owner<Codes>::add(module, "Codes", NAMED "Codes", of_codes) != 0 ||
        Owner<Intervals>::add(module, "Intervals", NAMED "Intervals", of_intervals) != 0 ||
        Owner<Automaton>::add(module, "Automaton", NAMED "Automaton", of_automaton) != 0 ||
        Owner<Subsets>::add(module, "Subsets", NAMED "Subsets", of_subsets) != 0 ||
        Owner<Sequence>::add(module, "Sequence", NAMED "Sequence", of_sequence) != 0 ||
        Owner<Sessions>::add(module, "Sessions", NAMED "Sessions", of_sessions) != 0 ||
        Owner<Spells>::add(module, "Spells", NAMED "Spells", of_spells) != 0 ||
        Owner<Rows>::add(module, "Rows", NAMED "Rows", of_rows) != 0 ||
        Owner<Totals>::add(module, "Totals", NAMED "Totals", of_totals) != 0 ||
        Owner<Keys>::add(module, "Keys", NAMED "Keys", of_keys) != 0 ||
        Owner<Objects>::add(module, "Objects", NAMED "Objects", of_objects) != 0 ||
        Owner<Aggregates>::add(module, "Aggregates", NAMED "Aggregates", of_aggregates) != 0 ||
        Owner<Windows>::add(module, "Windows", NAMED "Windows", of_windows) != 0 ||
        Owner<LastRows>::add(module, "LastRows", NAMED "LastRows", of_last_rows) != 0 ||
        Owner<LastOfKeys>::add(module, "LastOfKeys", NAMED "LastOfKeys", of_last_of_keys) != 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
