// The Python module. A call runs here if its arguments are plain arrays and clearly valid. Every other call
// goes to the Python function, which runs it or raises the error.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define MAXOPS_IMPORTS_NUMPY
#include "../drivers/cache.h"
#include "../core_table.h"
#include "element_types.h"
#include "gradients.h"
#include "memory.h"
#include "../drivers/scratch.h"
#include "sources.h"
#include "arguments.h"
#include "module_slots.h"
#include "operators.h"
#include "released.h"
#include "tensors.h"

#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

namespace maxops {
namespace {

// Runs a call for callers in C, which has no exceptions. It does not `catch (...)`, which would stop the
// unwinding of a thread that is ending.
PyObject* guarded(Call call, const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                  PyObject* keywords) {
    // If memory runs out before a call writes anything, the cache is released, and the call starts again.
    do {
        if (!reserve_scratch()) continue;
        try {
            return call(rules, args, positional, keywords);
        } catch (const std::bad_alloc&) {
        } catch (const std::exception& error) {
            PyErr_SetString(PyExc_RuntimeError, error.what());
            return nullptr;
        }
    } while (empty_cache());
    set_out_of_memory();
    return nullptr;
}

// ---------------------------------------------------------------------------- entry points

// A Python function with a native entry point: a wrapper in C, like functools.lru_cache.
struct Entry {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* function;
    PyObject* dict;
    PyObject* weakrefs;
    const OperatorEntry* operation;
    Rules rules;
};

// If an unexpected keyword argument is the name of a parameter in another library, replaces Python's
// TypeError with one that has a hint.
void explain_keywords(const Entry* entry, PyObject* keywords) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (Py_ssize_t k = 0; k < PyTuple_Size(keywords); ++k) {
        PyObject* name = PyTuple_GetItem(keywords, k);
        if (place_of_parameter(*entry->operation, name) >= 0) continue;
        PyObject* calls = PyImport_ImportModule("maxops.calls");
        PyObject* said = calls == nullptr ? nullptr
                                          : PyObject_CallMethod(calls, "explain_argument", "sO",
                                                                entry->operation->name, name);
        Py_XDECREF(calls);
        if (said == nullptr) {
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(trace);
            return;
        }
        Py_DECREF(said);
    }
    PyErr_Restore(type, value, trace);
}

constexpr npy_intp kFewElements = 16384;  // Python converts larger arrays in blocks

// An array, or a new array of a Python number. Null, with or without an error set, for larger arrays and
// other objects.
PyArrayObject* few_elements(PyObject* object, bool may_be_number) {
    PyArrayObject* array = plain_array(object);
    if (array != nullptr) return PyArray_SIZE(array) > kFewElements ? nullptr : (Py_INCREF(object), array);
    if (!may_be_number || !is_python_scalar(object)) return nullptr;
    array = reinterpret_cast<PyArrayObject*>(PyArray_FromAny(object, nullptr, 0, 0, 0, nullptr));
    const int type = array == nullptr ? -1 : PyArray_TYPE(array);
    if (type != NPY_BOOL && type != NPY_LONG && type != NPY_DOUBLE) Py_CLEAR(array);  // a large int
    return array;
}

// Calls a universal function with inputs of different dtypes, or with two Python numbers, in the dtype of
// NumPy's promotion. Null, with or without an error set, if Python handles the call.
PyObject* call_promoted(const Entry& entry, PyObject* const* args, Py_ssize_t positional,
                        PyObject* keywords) {
    const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
    if (positional != 2 || named > 1) return nullptr;
    const bool are_numbers = is_python_scalar(args[0]) && is_python_scalar(args[1]);
    PyArrayObject* const one = few_elements(args[0], are_numbers);
    PyArrayObject* const other = one == nullptr ? nullptr : few_elements(args[1], are_numbers);
    PyArray_Descr* const dtype =
        other == nullptr ? nullptr : PyArray_PromoteTypes(PyArray_DESCR(one), PyArray_DESCR(other));
    PyObject* result = nullptr;
    if (other != nullptr && dtype == nullptr) PyErr_Clear();  // there is no common dtype
    const bool are_supported = dtype != nullptr && type_of(one) >= 0 && type_of(other) >= 0;
    if (are_supported && (are_numbers || type_of(one) != type_of(other))) {
        PyObject* values[] = {nullptr, nullptr, named == 0 ? nullptr : args[2]};
        Py_INCREF(dtype);  // PyArray_FromArray takes ownership
        if ((values[0] = PyArray_FromArray(one, dtype, 0)) != nullptr) {
            Py_INCREF(dtype);
            values[1] = PyArray_FromArray(other, dtype, 0);
        }
        if (values[1] != nullptr) result = guarded(entry.operation->call, entry.rules, values, 2, keywords);
        Py_XDECREF(values[0]);
        Py_XDECREF(values[1]);
    }
    Py_XDECREF(dtype);
    Py_XDECREF(one);
    Py_XDECREF(other);
    return result;
}

PyObject* entry_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* keywords) {
    auto* entry = reinterpret_cast<Entry*>(self);
    const Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    PyObject* result = guarded(entry->operation->call, entry->rules, args, positional, keywords);
    if (result != nullptr || !goes_to_python()) return result;
    if (entry->rules.is_ufunc) {
        result = call_promoted(*entry, args, positional, keywords);
        if (result != nullptr || !goes_to_python()) return result;
    }
    result = PyObject_Vectorcall(entry->function, args, nargsf, keywords);
    if (result == nullptr && keywords != nullptr && entry->rules.is_plain && !entry->rules.is_ufunc &&
        PyErr_ExceptionMatches(PyExc_TypeError))
        explain_keywords(entry, keywords);
    return result;
}

int entry_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* entry = reinterpret_cast<Entry*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(entry->function);
    Py_VISIT(entry->dict);
    return 0;
}

int entry_clear(PyObject* self) {
    auto* entry = reinterpret_cast<Entry*>(self);
    Py_CLEAR(entry->function);
    Py_CLEAR(entry->dict);
    return 0;
}

void entry_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    if (reinterpret_cast<Entry*>(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
    entry_clear(self);
    PyTypeObject* type = Py_TYPE(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject* entry_get(PyObject* self, PyObject* instance, PyObject*) {
    if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
    PyObject* kinds = PyImport_ImportModule("types");
    PyObject* method =
        kinds == nullptr ? nullptr : PyObject_CallMethod(kinds, "MethodType", "OO", self, instance);
    Py_XDECREF(kinds);
    return method;
}

PyObject* entry_reduce(PyObject* self, PyObject*) {
    return PyObject_GetAttrString(self, "__qualname__");
}

#if PY_VERSION_HEX < 0x030C0000
// Subclasses of Entry without their own __call__ use vectorcall, too. From Python 3.12 on, they inherit it.
PyObject* entry_init_subclass(PyObject* type, PyObject*) {
    auto* made = reinterpret_cast<PyTypeObject*>(type);
    if (made->tp_call == PyVectorcall_Call) made->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    Py_RETURN_NONE;
}
#endif

PyObject* entry_repr(PyObject* self) {
    PyObject* name = PyObject_GetAttrString(reinterpret_cast<Entry*>(self)->function, "__name__");
    PyObject* text = name == nullptr ? nullptr : PyUnicode_FromFormat("<function maxops.%U>", name);
    Py_XDECREF(name);
    return text;
}

PyMethodDef entry_methods[] = {{"__reduce__", entry_reduce, METH_NOARGS, nullptr},
#if PY_VERSION_HEX < 0x030C0000
                               {"__init_subclass__", entry_init_subclass, METH_NOARGS | METH_CLASS, nullptr},
#endif
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef entry_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- rules of entry points

// A mask with the bit of each name in a sequence; -1 with an error set.
template <class PlaceOf>
std::int64_t bits_of_names(PyObject* names, const char* what, const PlaceOf& place_of) {
    PyObject* listed = PySequence_Tuple(names);
    if (listed == nullptr) return -1;
    std::int64_t bits = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(listed); ++i) {
        PyObject* name = PyTuple_GetItem(listed, i);
        const int place = place_of(name);
        if (place < 0) {
            PyErr_Format(PyExc_ValueError, "unknown %s %R", what, name);
            Py_DECREF(listed);
            return -1;
        }
        bits |= std::int64_t{1} << place;
    }
    Py_DECREF(listed);
    return bits;
}

int type_by_name(PyObject* name) {
    for (int type = 0; type < kTypes; ++type)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, kTypeNames[type]) == 0)
            return type;
    return -1;
}

// False with an error set.
bool read_rules(const OperatorEntry& entry, PyObject* types, PyObject* index_types, PyObject* keywords,
                const char* broadcasting, Rules* rules) {
    const auto place_of = [&](PyObject* name) { return place_of_parameter(entry, name); };
    std::int64_t bits = 0;
    if (types != nullptr) {
        if ((bits = bits_of_names(types, "type", type_by_name)) < 0) return false;
        rules->types = static_cast<std::uint32_t>(bits);
    }
    if (index_types != nullptr) {
        if ((bits = bits_of_names(index_types, "type", type_by_name)) < 0) return false;
        rules->index_types = static_cast<std::uint32_t>(bits);
    }
    if (keywords != nullptr) {
        if ((bits = bits_of_names(keywords, "parameter", place_of)) < 0) return false;
        rules->keywords = static_cast<std::uint32_t>(bits);
    }
    const std::string_view name = broadcasting;
    if (name != "none" && name != "numpy" && name != "strict") {
        PyErr_Format(PyExc_ValueError, "broadcast must be none, numpy or strict, got %s", broadcasting);
        return false;
    }
    rules->broadcasting = name == "none"     ? Broadcasting::kNone
                          : name == "strict" ? Broadcasting::kStrict
                                             : Broadcasting::kNumpy;
    return true;
}

PyTypeObject* ufunc_type;  // set on import and never freed

// Entry(function, operator, ...): the function with the native entry point of an operator and with these
// rules. The defaults are the rules of the plain function.
PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    static const char* const kNames[] = {"function",    "operator",      "types",      "index_types",
                                         "broadcast",   "negative_axes", "positional", "keywords",
                                         "ignores_nan", nullptr};
    PyObject *function, *name, *types = nullptr, *index_types = nullptr, *parameters = nullptr;
    const char* broadcasting = "numpy";
    int negative_axes = 1, ignores_nan = 0;
    Py_ssize_t positional = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$OOspnOp", const_cast<char**>(kNames), &function,
                                     &name, &types, &index_types, &broadcasting, &negative_axes, &positional,
                                     &parameters, &ignores_nan))
        return nullptr;
    const OperatorEntry* found = find_operator(name);
    if (found == nullptr) return PyErr_Format(PyExc_ValueError, "unknown native operator %R", name);
    Rules rules = plain_rules(*found);
    if (!read_rules(*found, types, index_types, parameters, broadcasting, &rules)) return nullptr;
    rules.negative_axes = negative_axes != 0;
    rules.is_plain = types == nullptr;
    rules.is_ufunc = PyType_IsSubtype(type, ufunc_type) != 0;
    rules.ignores_nan = ignores_nan != 0;
    if (positional < -1 || positional > found->count || (positional > 0 && found->positional == 0))
        return PyErr_Format(PyExc_ValueError, "%R has no %zd parameters", name, positional);
    if (positional >= 0) rules.positional = positional;
    auto* entry = reinterpret_cast<Entry*>(PyType_GenericAlloc(type, 0));
    if (entry == nullptr) return nullptr;
    entry->vectorcall = entry_vectorcall;
    entry->function = Py_NewRef(function);
    entry->dict = nullptr;
    entry->weakrefs = nullptr;
    entry->operation = found;
    new (&entry->rules) Rules(rules);
    return reinterpret_cast<PyObject*>(entry);
}

PyMemberDef entry_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Entry, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Entry, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

template <class Function>
void* as_slot(Function* function) {
    return reinterpret_cast<void*>(function);
}

PyType_Slot entry_slots[] = {{Py_tp_new, as_slot(entry_new)},
                             {Py_tp_call, as_slot(PyVectorcall_Call)},
                             {Py_tp_descr_get, as_slot(entry_get)},
                             {Py_tp_dealloc, as_slot(entry_dealloc)},
                             {Py_tp_traverse, as_slot(entry_traverse)},
                             {Py_tp_clear, as_slot(entry_clear)},
                             {Py_tp_repr, as_slot(entry_repr)},
                             {Py_tp_methods, entry_methods},
                             {Py_tp_members, entry_members},
                             {Py_tp_getset, entry_getset},
                             {0, nullptr}};
PyType_Spec entry_spec = {"maxops._native.Entry", sizeof(Entry), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                              Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_BASETYPE,
                          entry_slots};
PyObject* entry_type;  // set on import and never freed

// Ufunc(function, "maximum", ...): an entry with numpy.maximum's calling convention. It does not bind as a
// method. It has its own tp_call, so that the readable call below does not apply to its subclasses.
PyObject* ufunc_get(PyObject* self, PyObject*, PyObject*) {
    return Py_NewRef(self);
}

PyMemberDef ufunc_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot ufunc_slots[] = {{Py_tp_call, as_slot(PyVectorcall_Call)},
                             {Py_tp_descr_get, as_slot(ufunc_get)},
                             {Py_tp_members, ufunc_members},
                             {0, nullptr}};
PyType_Spec ufunc_spec = {"maxops._native.Ufunc", sizeof(Entry), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE, ufunc_slots};

// entry(function): the function, with the native entry point of the same name.
PyObject* make_entry(PyObject*, PyObject* function) {
    PyObject* name = PyObject_GetAttrString(function, "__name__");
    if (name == nullptr) return nullptr;
    PyObject* both[] = {function, name};
    PyObject* entry = PyObject_Vectorcall(entry_type, both, 2, nullptr);
    Py_DECREF(name);
    if (entry == nullptr) return nullptr;
    PyObject* functools = PyImport_ImportModule("functools");
    PyObject* updated = functools == nullptr
                            ? nullptr
                            : PyObject_CallMethod(functools, "update_wrapper", "OO", entry, function);
    Py_XDECREF(functools);
    Py_DECREF(entry);
    return updated;  // the entry, which update_wrapper returns
}

// ---------------------------------------------------------------------------- the module's functions

// The operators without their Python fallback: return None where the fallback would be called. With
// `is_planned`, None means that an argument has changed since the call was planned, and running out of memory
// is an error.
template <int which, bool is_planned>
PyObject* call_without_python(PyObject*, PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    static const Rules rules = plain_rules(kOperatorEntries[which]);
    PyObject* result = guarded(kOperatorEntries[which].call, rules, args, positional, keywords);
    const bool is_handled =
        result != nullptr || (is_planned ? PyErr_Occurred() != nullptr : !goes_to_python());
    if (is_handled) return result;
    Py_RETURN_NONE;
}

// The offsets of slices that run from each index to the next, or to the end. Null, with or without an error
// set, if the indices are not a few integers that increase from 0.
PyObject* offsets_of(PyObject* indices, std::int64_t rows) {
    const bool is_list = PyList_CheckExact(indices);
    PyArrayObject* const array = is_list ? nullptr : plain_array(indices);
    const auto size = [&] { return is_list ? PyList_Size(indices) : PyArray_DIM(array, 0); };
    if (!is_list && (array == nullptr || PyArray_NDIM(array) != 1 || PyArray_TYPE(array) != NPY_LONG ||
                     !PyArray_ISBEHAVED_RO(array)))
        return nullptr;
    const npy_intp count = size(), offsets_count = count + 1;
    if (count < 1 || count > kFewElements) return nullptr;
    PyObject* const offsets = PyArray_SimpleNew(1, &offsets_count, NPY_INT64);
    if (offsets == nullptr) return nullptr;
    auto* const to = static_cast<std::int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(offsets)));
    bool increases = size() == count;  // the allocation may have run other code
    for (npy_intp k = 0; increases && k < count; ++k) {
        if (is_list)
            increases = read_integer(PyList_GetItem(indices, k), to + k);
        else
            to[k] = *reinterpret_cast<const std::int64_t*>(PyArray_GETPTR1(array, k));
        increases = increases && (k == 0 ? to[0] == 0 : to[k] > to[k - 1]);
    }
    to[count] = rows;
    if (increases && to[count - 1] < rows) return offsets;
    Py_DECREF(offsets);
    return nullptr;
}

PyObject *reduceat_keywords, *zero_word;  // set on import and never freed

// (array, indices, axis, nan): the slices' maxima, as numpy.maximum.reduceat returns them. None if Python
// handles the call.
PyObject* py_reduceat(PyObject*, PyObject* const* args, Py_ssize_t count) {
    const OperatorEntry& operation = kOperatorEntries[2];
    static const Rules rules = plain_rules(operation);
    PyArrayObject* const array = count == 4 ? plain_array(args[0]) : nullptr;
    std::int64_t axis = 0;
    PyObject* offsets = nullptr;
    if (array != nullptr && read_integer(args[2], &axis)) {
        axis += axis < 0 ? PyArray_NDIM(array) : 0;
        if (0 <= axis && axis < PyArray_NDIM(array))
            offsets = offsets_of(args[1], PyArray_DIM(array, static_cast<int>(axis)));
    }
    if (offsets != nullptr) {
        PyObject* const values[] = {args[0], args[2], args[3], offsets, zero_word};
        PyObject* const result = guarded(operation.call, rules, values, 1, reduceat_keywords);
        Py_DECREF(offsets);
        if (result != nullptr) return result;
    }
    if (!goes_to_python()) return nullptr;
    Py_RETURN_NONE;
}

// Sets `__call__` of entries for tools that read code instead of running it. PyTorch's compiler can follow a
// Python function, but not the native entry point, which all actual calls use. Existing subclasses of Entry
// stay as they are; later ones would be called through this function.
PyObject* set_readable_call(PyObject*, PyObject* function) {
    // Setting the attribute would also set tp_call. So the function goes into the type's dictionary, which
    // the stable ABI provides behind a proxy.
    PyObject* proxy = PyObject_GetAttrString(entry_type, "__dict__");
    PyObject* gc = proxy == nullptr ? nullptr : PyImport_ImportModule("gc");
    PyObject* behind = gc == nullptr ? nullptr : PyObject_CallMethod(gc, "get_referents", "O", proxy);
    PyObject* names = behind == nullptr ? nullptr : PyList_GetItem(behind, 0);
    if (names != nullptr && PyDict_SetItemString(names, "__call__", function) == 0)
        PyType_Modified(reinterpret_cast<PyTypeObject*>(entry_type));
    Py_XDECREF(proxy);
    Py_XDECREF(gc);
    Py_XDECREF(behind);
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
}

// The names of the instruction sets, best first: all that were compiled, or those that this machine supports.
PyObject* names_of_isas(bool all) {
    PyObject* names = PyList_New(0);
    for (const InstructionSet* set = instruction_sets(); names != nullptr && set->name != nullptr; ++set) {
        if (!all && !set->runs_here()) continue;
        PyObject* name = PyUnicode_FromString(set->name);
        if (name == nullptr || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyObject* isas(PyObject*, PyObject*) {
    return names_of_isas(false);
}

PyObject* py_build(PyObject*, PyObject*) {
    const Build made = build();
    PyObject* names = names_of_isas(true);
    if (names == nullptr) return nullptr;
    return Py_BuildValue("{s:s,s:s,s:s,s:N}", "sources", made.sources, "compiler", made.compiler, "flags",
                         made.flags, "instruction_sets", names);
}

// For tests: (out, input, in_place), whether `out` may be written while `input` is read.
PyObject* py_can_write_through(PyObject*, PyObject* args) {
    PyObject *out, *input;
    int in_place;
    View views[2];
    Item items[2];
    if (!PyArg_ParseTuple(args, "OOp:can_write_through", &out, &input, &in_place)) return nullptr;
    if (!read_typed(out, &views[0], &items[0]) || !read_typed(input, &views[1], &items[1])) {
        PyErr_SetString(PyExc_TypeError, "can_write_through() expects arrays of supported dtypes");
        return nullptr;
    }
    return PyBool_FromLong(can_write_through(views[0], &views[1], 1, in_place != 0));
}

PyObject* isa(PyObject*, PyObject*) {
    return PyUnicode_FromString(current().name);
}

PyObject* use_isa(PyObject*, PyObject* name) {
    const char* text = PyUnicode_AsUTF8AndSize(name, nullptr);
    if (text == nullptr) return nullptr;
    return PyBool_FromLong(use(text));
}

PyObject* py_set_num_threads(PyObject*, PyObject* count) {
    constexpr long kMost = 1024;
    const long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return nullptr;
    if (threads < 1 || threads > kMost) {
        PyErr_Format(PyExc_ValueError, "got %ld threads, expected 1 to %ld", threads, kMost);
        return nullptr;
    }
    set_num_threads(static_cast<int>(threads));
    Py_RETURN_NONE;
}

PyObject* py_num_threads(PyObject*, PyObject*) {
    return PyLong_FromLong(num_threads());
}

PyObject* py_set_largest_output(PyObject*, PyObject* bytes) {
    std::size_t limit = PyLong_AsSize_t(bytes);
    if (PyErr_Occurred()) return nullptr;
    set_largest_output(limit);
    Py_RETURN_NONE;
}

PyObject* py_set_cache_limit(PyObject*, PyObject* bytes) {
    std::size_t limit = PyLong_AsSize_t(bytes);
    if (PyErr_Occurred()) return nullptr;
    set_cache_limit(limit);
    Py_RETURN_NONE;
}

PyObject* py_empty_cache(PyObject*, PyObject*) {
    return PyBool_FromLong(empty_cache());
}

PyObject* py_cache_info(PyObject*, PyObject*) {
    const CacheInfo info = cache_info();
    return Py_BuildValue("nnnnn", static_cast<Py_ssize_t>(info.limit), static_cast<Py_ssize_t>(info.kept),
                         static_cast<Py_ssize_t>(info.blocks), static_cast<Py_ssize_t>(info.reused),
                         static_cast<Py_ssize_t>(info.fresh));
}

PyObject* py_progress(PyObject*, PyObject*) {
    Progress now = progress();
    return Py_BuildValue("nn", static_cast<Py_ssize_t>(now.done), static_cast<Py_ssize_t>(now.count));
}

// The content of types.def, for the test that compares it with maxops.dtypes: name -> (itemsize, lowest,
// NaN).
PyObject* types(PyObject*, PyObject*) {
    PyObject* rows = PyDict_New();
    for (int type = 0; rows != nullptr && type < kTypes; ++type) {
        const Kernels& k = kernels_of(type);
        PyObject* row = Py_BuildValue("nKK", static_cast<Py_ssize_t>(k.itemsize),
                                      static_cast<unsigned long long>(k.lowest_finite),
                                      static_cast<unsigned long long>(k.nan));
        if (row == nullptr || PyDict_SetItemString(rows, kTypeNames[type], row) < 0) Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

// The content of parameters.def in this build, for tests around each boundary: name -> (value, unit).
PyObject* parameters(PyObject*, PyObject*) {
    PyObject* rows = PyDict_New();
    const auto add = [&](const char* name, std::size_t value, const char* unit) {
        if (rows == nullptr) return;
        PyObject* row = Py_BuildValue("ns", static_cast<Py_ssize_t>(value), unit);
        if (row == nullptr || PyDict_SetItemString(rows, name, row) < 0) Py_CLEAR(rows);
        Py_XDECREF(row);
    };
#define MAXOPS_PARAMETER(name, ordinary, miniature, least, most, unit) add(#name, name, #unit);
#include "../core/parameters.def"
#undef MAXOPS_PARAMETER
    return rows;
}

template <class Function>
PyCFunction as_c_function(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"entry", make_entry, METH_O, nullptr},
    {"set_readable_call", set_readable_call, METH_O, nullptr},
    {"maximum", as_c_function(call_without_python<0, false>), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"reduce_max", as_c_function(call_without_python<1, false>), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"segment_max", as_c_function(call_without_python<2, false>), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"planned_maximum", as_c_function(call_without_python<0, true>), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"planned_reduce_max", as_c_function(call_without_python<1, true>), METH_FASTCALL | METH_KEYWORDS,
     nullptr},
    {"planned_segment_max", as_c_function(call_without_python<2, true>), METH_FASTCALL | METH_KEYWORDS,
     nullptr},
    {"check_indices", as_c_function(py_check_indices), METH_FASTCALL, nullptr},
    {"reduceat", as_c_function(py_reduceat), METH_FASTCALL, nullptr},
    {"widened", py_widened, METH_O, nullptr},
    {"take_tensors", py_take_tensors, METH_VARARGS, nullptr},
    {"spread", as_c_function(py_spread), METH_FASTCALL, nullptr},
    {"can_write_through", py_can_write_through, METH_VARARGS, nullptr},
    {"build", py_build, METH_NOARGS, nullptr},
    {"isas", isas, METH_NOARGS, nullptr},
    {"isa", isa, METH_NOARGS, nullptr},
    {"use_isa", use_isa, METH_O, nullptr},
    {"set_num_threads", py_set_num_threads, METH_O, nullptr},
    {"get_num_threads", py_num_threads, METH_NOARGS, nullptr},
    {"set_largest_output", py_set_largest_output, METH_O, nullptr},
    {"set_cache_limit", py_set_cache_limit, METH_O, nullptr},
    {"empty_cache", py_empty_cache, METH_NOARGS, nullptr},
    {"cache_info", py_cache_info, METH_NOARGS, nullptr},
    {"progress", py_progress, METH_NOARGS, nullptr},
    {"types", types, METH_NOARGS, nullptr},
    {"parameters", parameters, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// Initializes the state that all modules of this process share, once; false with an error set.
bool prepare() {
    if (entry_type != nullptr) return true;
    if (current().name == nullptr) {
        PyErr_SetString(
            PyExc_ImportError,
            "this processor supports none of the instruction sets that maxops was built for; on x86-64, "
            "maxops requires SSE4.2 and POPCNT (x86-64-v2)");
        return false;
    }
    if (!find_types() || !find_argument_types() || !intern_parameters() || !find_main_thread()) return false;
    zero_word = PyUnicode_InternFromString("zero");
    const auto interned = PyUnicode_InternFromString;
    reduceat_keywords = Py_BuildValue("(NNNN)", interned("axis"), interned("nan"), interned("offsets"),
                                      interned("fill_mode"));
    if (zero_word == nullptr || reduceat_keywords == nullptr) return false;
    entry_type = PyType_FromSpec(&entry_spec);
    if (entry_type == nullptr) return false;
    ufunc_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&ufunc_spec, entry_type));
    return ufunc_type != nullptr;
}

int fill_module(PyObject* module) {
    import_array1(-1);
    if (!prepare()) return -1;
    // The table is in the library's own memory, which is never unloaded or written.
    void* table = const_cast<CoreTable*>(&core_table());
    PyObject* capsule = PyCapsule_New(table, kCoreTableName, nullptr);
#ifdef MAXOPS_MINIATURE
    constexpr long kIsMiniature = 1;
#else
    constexpr long kIsMiniature = 0;
#endif
    const bool is_filled =
        capsule != nullptr && PyModule_AddObjectRef(module, "core", capsule) == 0 &&
        PyModule_AddObjectRef(module, "Entry", entry_type) == 0 &&
        PyModule_AddObjectRef(module, "Ufunc", reinterpret_cast<PyObject*>(ufunc_type)) == 0 &&
        PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error()) == 0 &&
        PyModule_AddIntConstant(module, "is_miniature", kIsMiniature) == 0;
    Py_XDECREF(capsule);
    return is_filled ? 0 : -1;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, as_slot(fill_module)}, MAXOPS_MODULE_SLOTS, {0, nullptr}};
PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "maxops._native",
                                 "The native core of maxops.",
                                 0,
                                 methods,
                                 slots,
                                 nullptr,
                                 nullptr,
                                 nullptr};

}  // namespace
}  // namespace maxops

PyMODINIT_FUNC PyInit__native() {
    return PyModuleDef_Init(&maxops::module_definition);
}
