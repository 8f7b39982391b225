// Python's arguments as plain C++: buffers of a checked item size, and classes around a C++ object.
//
// Uses only the stable ABI of Python 3.11, so that one wheel serves every later version.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <vector>

// A Python exception that is already set.
struct Raised : std::exception {};

// A contiguous array of T that Python owns. None stands for a missing array.
template <typename T>
class View {
    Py_buffer buffer{};
    bool held = false;

  public:
    T *data = nullptr;
    int64_t size = 0;

    explicit View(PyObject *array, bool writable = false) {
        if (array == Py_None) return;
        int flags = writable ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
        if (PyObject_GetBuffer(array, &buffer, flags) != 0) throw Raised();
        held = true;
        if (buffer.itemsize != static_cast<Py_ssize_t>(sizeof(T))) {
            PyErr_Format(PyExc_TypeError, "items of %zd bytes: want %zu", buffer.itemsize, sizeof(T));
            PyBuffer_Release(&buffer);
            throw Raised();
        }
        data = static_cast<T *>(buffer.buf);
        size = buffer.len / buffer.itemsize;
    }
    View(View &&other) noexcept
        : buffer(other.buffer), held(other.held), data(other.data), size(other.size) {
        other.held = false;
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;
    ~View() {
        if (held) PyBuffer_Release(&buffer);
    }

    // Refuses a shorter array, because reading past its end would crash.
    void want(int64_t length) const {
        if (data != nullptr && size < length) {
            PyErr_Format(PyExc_ValueError, "an array of %lld items: want %lld",
                         static_cast<long long>(size), static_cast<long long>(length));
            throw Raised();
        }
    }
};

using Ints = View<const int64_t>;
using Bytes = View<const uint8_t>;
using Out = View<int64_t>;

// An array of T that is held elsewhere. Without data it is missing.
template <typename T>
struct Span {
    const T *data = nullptr;
    int64_t size = 0;

    Span() = default;
    Span(const T *data, int64_t size) : data(data), size(size) {}
    Span(const View<const T> &view) : data(view.data), size(view.size) {}
    Span(const std::vector<T> &vector) : data(vector.data()), size(static_cast<int64_t>(vector.size())) {}

    // Refuses a shorter array.
    void want(int64_t length) const {
        if (data != nullptr && size < length) throw std::out_of_range("an array that is too short");
    }
};

// Runs a body that may throw; returns NULL on failure.
template <typename Body>
PyObject *guarded(Body body) {
    try {
        return body();
    } catch (const Raised &) {
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

// A Python object that owns a T.
template <typename T>
struct Owner {
    PyObject_HEAD
    T *inside;

    inline static PyTypeObject *type = nullptr;

    static T &of(PyObject *self) { return *reinterpret_cast<Owner *>(self)->inside; }

    // Like `of`, for an argument that may be any object.
    static T &checked(PyObject *argument) {
        if (Py_TYPE(argument) != type) throw std::invalid_argument("an object of another class");
        return of(argument);
    }

    static PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
        return guarded([&]() -> PyObject * {
            auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
            PyObject *self = allocate(type, 0);
            if (self == nullptr) throw Raised();
            reinterpret_cast<Owner *>(self)->inside = new T();
            return self;
        });
    }

    static void free(PyObject *self) {
        delete reinterpret_cast<Owner *>(self)->inside;
        PyTypeObject *type = Py_TYPE(self);
        auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
        release(self);
        Py_DECREF(type);
    }

    // Adds the class to a module.
    static int add(PyObject *module, const char *name, const char *full, PyMethodDef *methods) {
        PyType_Slot slots[] = {
            {Py_tp_new, reinterpret_cast<void *>(make)},
            {Py_tp_dealloc, reinterpret_cast<void *>(free)},
            {Py_tp_methods, methods},
            {0, nullptr},
        };
        PyType_Spec spec = {full, sizeof(Owner), 0, Py_TPFLAGS_DEFAULT, slots};
        PyObject *made = PyType_FromSpec(&spec);
        if (made == nullptr) return -1;
        type = reinterpret_cast<PyTypeObject *>(made);
        int added = PyModule_AddObjectRef(module, name, made);
        Py_DECREF(made);
        return added;
    }
};
