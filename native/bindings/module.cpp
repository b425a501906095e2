// The Python module. C says yes, Python says why: a call whose arguments are plain arrays and clearly
// valid runs here; every other goes to the Python function, which runs it or says what is wrong.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define MAXOPS_IMPORTS_NUMPY
#include "../cache.h"
#include "../core_table.h"
#include "../element_types.h"
#include "../memory.h"
#include "../scratch.h"
#include "../sources.h"
#include "arguments.h"
#include "operators.h"
#include "released.h"

#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

namespace maxops {
namespace {

// A call from C, which knows no exceptions. (Not `catch (...)`: that would stop an ending thread's
// unwinding.)
PyObject* guarded(Call call, const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                  PyObject* keywords) {
    if (!reserve_scratch()) {
        set_out_of_memory();
        return nullptr;
    }
    try {
        return call(rules, args, positional, keywords);
    } catch (const std::bad_alloc&) {
        set_out_of_memory();
        return nullptr;
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

// ---------------------------------------------------------------------------- entry points

// A Python function with a native way in: what functools.lru_cache does for caching, this does for speed.
struct Entry {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* function;
    PyObject* dict;
    PyObject* weakrefs;
    Call call;
    Rules rules;
};

PyObject* entry_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* keywords) {
    auto* entry = reinterpret_cast<Entry*>(self);
    PyObject* result = guarded(entry->call, entry->rules, args, PyVectorcall_NARGS(nargsf), keywords);
    if (result != nullptr || !goes_to_python()) return result;
    return PyObject_Vectorcall(entry->function, args, nargsf, keywords);
}

int entry_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* entry = reinterpret_cast<Entry*>(self);
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
    Py_TYPE(self)->tp_free(self);
}

PyObject* entry_get(PyObject* self, PyObject* instance, PyObject*) {
    if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

PyObject* entry_reduce(PyObject* self, PyObject*) {
    return PyObject_GetAttrString(self, "__qualname__");
}

PyObject* entry_repr(PyObject* self) {
    return PyUnicode_FromFormat("<maxops function %R>", reinterpret_cast<Entry*>(self)->function);
}

// A class of entries without a __call__ of its own is called as they are, whatever code there is for its
// readers (set_readable_call).
PyObject* entry_init_subclass(PyObject* type, PyObject*) {
    auto* made = reinterpret_cast<PyTypeObject*>(type);
    const int has_own = PyMapping_HasKeyString(made->tp_dict, "__call__");
    if (has_own == 0) {
        made->tp_call = PyVectorcall_Call;
        made->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    }
    Py_RETURN_NONE;
}

PyMethodDef entry_methods[] = {{"__reduce__", entry_reduce, METH_NOARGS, nullptr},
                               {"__init_subclass__", entry_init_subclass, METH_NOARGS | METH_CLASS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef entry_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- their rules

// The bits of a sequence's names, by their places; none is null for all. -1 with an error set.
template <class PlaceOf>
std::int64_t bits_of_names(PyObject* names, const char* what, const PlaceOf& place_of) {
    PyObject* listed = PySequence_Fast(names, "names come in a sequence");
    if (listed == nullptr) return -1;
    std::int64_t bits = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(listed); ++i) {
        PyObject* name = PySequence_Fast_GET_ITEM(listed, i);
        const int place = place_of(name);
        if (place < 0) {
            PyErr_Format(PyExc_ValueError, "%s %R is not known", what, name);
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
        PyErr_Format(PyExc_ValueError, "broadcast is %s; it is none, numpy or strict", broadcasting);
        return false;
    }
    rules->broadcasting = name == "none"     ? Broadcasting::kNone
                          : name == "strict" ? Broadcasting::kStrict
                                             : Broadcasting::kNumpy;
    return true;
}

// Entry(function, operator, ...): the function, with the native way in of an operator under these rules;
// those of the plain function, where none are given.
PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    static const char* const kNames[] = {"function",  "operator",      "types",          "index_types",
                                         "broadcast", "negative_axes", "explicit_types", "positional",
                                         "keywords",  nullptr};
    PyObject *function, *name, *types = nullptr, *index_types = nullptr, *parameters = nullptr;
    const char* broadcasting = "numpy";
    int negative_axes = 1, explicit_types = 0;
    Py_ssize_t positional = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$OOsppnO", const_cast<char**>(kNames), &function,
                                     &name, &types, &index_types, &broadcasting, &negative_axes,
                                     &explicit_types, &positional, &parameters))
        return nullptr;
    const OperatorEntry* found = find_operator(name);
    if (found == nullptr) return PyErr_Format(PyExc_ValueError, "no native operator is called %R", name);
    Rules rules = plain_rules(*found);
    if (!read_rules(*found, types, index_types, parameters, broadcasting, &rules)) return nullptr;
    rules.negative_axes = negative_axes != 0;
    rules.explicit_types = explicit_types != 0;
    if (positional < -1 || positional > found->count || (positional > 0 && found->positional == 0))
        return PyErr_Format(PyExc_ValueError, "%R has no %zd parameters", name, positional);
    if (positional >= 0) rules.positional = positional;
    auto* entry = reinterpret_cast<Entry*>(type->tp_alloc(type, 0));
    if (entry == nullptr) return nullptr;
    entry->vectorcall = entry_vectorcall;
    entry->function = Py_NewRef(function);
    entry->dict = nullptr;
    entry->weakrefs = nullptr;
    entry->call = found->call;
    new (&entry->rules) Rules(rules);
    return reinterpret_cast<PyObject*>(entry);
}

PyTypeObject entry_type = [] {
    PyTypeObject type{};
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(&type), 1);
    type.tp_name = "maxops._native.Entry";
    type.tp_basicsize = sizeof(Entry);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                    Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_BASETYPE;
    type.tp_vectorcall_offset = offsetof(Entry, vectorcall);
    type.tp_dictoffset = offsetof(Entry, dict);
    type.tp_weaklistoffset = offsetof(Entry, weakrefs);
    type.tp_new = entry_new;
    type.tp_call = PyVectorcall_Call;
    type.tp_descr_get = entry_get;
    type.tp_dealloc = entry_dealloc;
    type.tp_traverse = entry_traverse;
    type.tp_clear = entry_clear;
    type.tp_repr = entry_repr;
    type.tp_methods = entry_methods;
    type.tp_getset = entry_getset;
    return type;
}();

// entry(function): the function with the native way in that its name stands for.
PyObject* make_entry(PyObject*, PyObject* function) {
    PyObject* name = PyObject_GetAttrString(function, "__name__");
    if (name == nullptr) return nullptr;
    PyObject* both[] = {function, name};
    PyObject* entry = PyObject_Vectorcall(reinterpret_cast<PyObject*>(&entry_type), both, 2, nullptr);
    Py_DECREF(name);
    if (entry == nullptr) return nullptr;
    // Name, docstring, signature and the rest, as every well-behaved wrapper has them.
    PyObject* functools = PyImport_ImportModule("functools");
    PyObject* updated = functools == nullptr
                            ? nullptr
                            : PyObject_CallMethod(functools, "update_wrapper", "OO", entry, function);
    Py_XDECREF(functools);
    Py_DECREF(entry);
    return updated;  // the entry, as update_wrapper gives it back
}

// ---------------------------------------------------------------------------- the module's functions

// The operators without their Python functions: None where those would be asked.
// `is_planned`: None if an argument is no longer what it was; that memory ended is an error then.
template <int which, bool is_planned>
PyObject* call_without_python(PyObject*, PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    static const Rules rules = plain_rules(kOperatorEntries[which]);
    PyObject* result = guarded(kOperatorEntries[which].call, rules, args, positional, keywords);
    const bool is_handled =
        result != nullptr || (is_planned ? PyErr_Occurred() != nullptr : !goes_to_python());
    if (is_handled) return result;
    Py_RETURN_NONE;
}

// Sets what `__call__` is on entries for those who read code instead of running it, as PyTorch's compiler
// does: it can follow a Python function, and not the native way in, which is how every real call goes.
PyObject* set_readable_call(PyObject*, PyObject* function) {
    if (PyDict_SetItemString(entry_type.tp_dict, "__call__", function) < 0) return nullptr;
    PyType_Modified(&entry_type);
    Py_RETURN_NONE;
}

PyObject* isas(PyObject*, PyObject*) {
    PyObject* names = PyList_New(0);
    for (const InstructionSet* set = instruction_sets(); names != nullptr && set->name != nullptr; ++set) {
        if (!set->runs_here()) continue;
        PyObject* name = PyUnicode_FromString(set->name);
        if (name == nullptr || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyObject* py_sources(PyObject*, PyObject*) {
    return PyUnicode_FromString(sources());
}

PyObject* isa(PyObject*, PyObject*) {
    return PyUnicode_FromString(current().name);
}

PyObject* use_isa(PyObject*, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == nullptr) return nullptr;
    return PyBool_FromLong(use(text));
}

PyObject* py_set_num_threads(PyObject*, PyObject* count) {
    constexpr long kMost = 1024;
    const long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return nullptr;
    if (threads < 1 || threads > kMost) {
        PyErr_Format(PyExc_ValueError, "the number of threads is %ld; it is 1 to %ld", threads, kMost);
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

// What types.def says, for the test that compares it with maxops.dtypes: name -> (itemsize, lowest, NaN).
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

// What parameters.def says of this build, for the tests that spell inputs around it: name -> (value, unit).
PyObject* parameters(PyObject*, PyObject*) {
    PyObject* rows = PyDict_New();
    const auto add = [&](const char* name, std::size_t value, const char* unit) {
        if (rows == nullptr) return;
        PyObject* row = Py_BuildValue("ns", static_cast<Py_ssize_t>(value), unit);
        if (row == nullptr || PyDict_SetItemString(rows, name, row) < 0) Py_CLEAR(rows);
        Py_XDECREF(row);
    };
#define MAXOPS_PARAMETER(name, ordinary, miniature, least, most, unit) add(#name, name, #unit);
#include "../parameters.def"
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
    {"sources", py_sources, METH_NOARGS, nullptr},
    {"isas", isas, METH_NOARGS, nullptr},
    {"isa", isa, METH_NOARGS, nullptr},
    {"use_isa", use_isa, METH_O, nullptr},
    {"set_num_threads", py_set_num_threads, METH_O, nullptr},
    {"get_num_threads", py_num_threads, METH_NOARGS, nullptr},
    {"set_largest_output", py_set_largest_output, METH_O, nullptr},
    {"set_cache_limit", py_set_cache_limit, METH_O, nullptr},
    {"cache_info", py_cache_info, METH_NOARGS, nullptr},
    {"progress", py_progress, METH_NOARGS, nullptr},
    {"types", types, METH_NOARGS, nullptr},
    {"parameters", parameters, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "maxops._native",
                                 "The native core of maxops.",
                                 -1,
                                 methods,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

}  // namespace
}  // namespace maxops

PyMODINIT_FUNC PyInit__native() {
    import_array();
    if (!maxops::find_types()) return nullptr;
    if (!maxops::find_argument_types() || !maxops::intern_parameters()) return nullptr;
    if (!maxops::find_main_thread() || PyType_Ready(&maxops::entry_type) < 0) return nullptr;
    PyObject* module = PyModule_Create(&maxops::module_definition);
    // What the table points to is the module's own memory, which nothing unloads and nobody writes.
    void* table = const_cast<maxops::CoreTable*>(&maxops::core_table());
    PyObject* capsule = module == nullptr ? nullptr : PyCapsule_New(table, maxops::kCoreTableName, nullptr);
#ifdef MAXOPS_MINIATURE
    constexpr long kIsMiniature = 1;
#else
    constexpr long kIsMiniature = 0;
#endif
    const bool is_added =
        capsule != nullptr && PyModule_AddObjectRef(module, "core", capsule) == 0 &&
        PyModule_AddObjectRef(module, "Entry", reinterpret_cast<PyObject*>(&maxops::entry_type)) == 0 &&
        PyModule_AddObjectRef(module, "OutOfMemoryError", maxops::out_of_memory_error()) == 0 &&
        PyModule_AddIntConstant(module, "is_miniature", kIsMiniature) == 0;
    Py_XDECREF(capsule);
    if (!is_added) Py_CLEAR(module);
    return module;
}
