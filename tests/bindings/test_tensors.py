"""The table of DLPack functions of a framework: the tensors of calls, and failures of each function.

The framework is made with ctypes in a separate process, because a registered table stays for the life of the process.
"""

from __future__ import annotations

from helpers.programs import run

SCRIPT = """
import ctypes as c
import gc
import sys
import numpy as np
from numpy.lib.stride_tricks import as_strided
from maxops import _native

class Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("number", c.c_int32)]
class ElementType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]
class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", Device), ("rank", c.c_int32), ("type", ElementType),
                ("sizes", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("offset", c.c_uint64)]
class Owned(c.Structure):
    pass
RELEASE = c.CFUNCTYPE(None, c.POINTER(Owned))
Owned._fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("release", RELEASE),
                  ("flags", c.c_uint64), ("tensor", DLTensor)]
ALLOCATE = c.PYFUNCTYPE(c.c_int, c.POINTER(DLTensor), c.POINTER(c.POINTER(Owned)), c.c_void_p, c.c_void_p)
GIVE = c.PYFUNCTYPE(c.c_int, c.POINTER(Owned), c.POINTER(c.c_void_p))
LOOK = c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(DLTensor))
class Table(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("older", c.c_void_p), ("allocate", ALLOCATE),
                ("own", c.c_void_p), ("give", GIVE), ("look", LOOK), ("stream", c.c_void_p)]

fault = None       # the function that fails, or what is odd
written = []
alive = {}         # owned tensors by address
released = 0

class Tensor:
    asks = False
    def __init__(self, array):
        self.array = array
        self.sizes = (c.c_int64 * max(1, array.ndim))(*array.shape)
        self.strides = (c.c_int64 * max(1, array.ndim))(*(step // array.itemsize for step in array.strides))
    def is_locked(self):
        return fault == "locked"
    def write(self):
        if fault == "write fails":
            raise RuntimeError("a fault")
        written.append(self)
    def gradient(self):
        return fault == "asks"
    @property
    def is_odd(self):
        return fault == "is_odd"

def fail():
    return -1  # an error that a callback sets, ctypes prints and clears

CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
def look(tensor, seen):
    if fault == "look":
        return fail()
    array = tensor.array
    lanes = 2 if fault == "lanes" else 1
    seen[0] = DLTensor(array.ctypes.data - 8, Device(2 if fault == "device" else 1, 0), array.ndim,
                       ElementType(CODES[array.dtype.kind], 8 * array.itemsize, lanes),
                       tensor.sizes, None if fault == "no strides" else tensor.strides, 8)
    if fault == "no memory":
        seen[0].data, seen[0].offset = None, 0
    return 0

def release(owned):
    global released
    released += 1
    del alive[c.addressof(owned[0])]

def allocate(prototype, made, _, set_error):
    asked = prototype[0]
    assert (asked.device.type, asked.device.number, asked.offset) == (1, 0, 0)
    if fault == "allocate" or fault == f"allocate {len(alive)}":
        c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p)(set_error)(None, b"RuntimeError", b"a fault")
        return -1
    shape = tuple(asked.sizes[axis] for axis in range(asked.rank))
    kind = {0: "i", 1: "u", 2: "f", 6: "b"}[asked.type.code]
    array = np.empty(shape, "?" if kind == "b" else f"{kind}{asked.type.bits // 8}",
                     order="F" if fault == "layout" else "C")
    tensor = Tensor(array)
    owned = Owned(2 if fault == "version" else 1, 3, None, keep_release, 0,
                  DLTensor(array.ctypes.data - 16, Device(1, 0), asked.rank, asked.type, tensor.sizes,
                           None if fault == "no strides" else tensor.strides, 16))
    alive[c.addressof(owned)] = owned, tensor
    made[0] = c.pointer(owned)
    return 0

def copied(owned):  # of another owner, who has it back
    seen = owned[0].tensor
    sizes, steps = ([of[axis] for axis in range(seen.rank)] for of in (seen.sizes, seen.strides))
    last = sum((size - 1) * step for size, step in zip(sizes, steps))
    memory = (c.c_double * (last + 1)).from_address(seen.data + seen.offset)
    array = np.array(as_strided(np.asarray(memory), sizes, [8 * step for step in steps]), order="K")
    owned[0].release(owned)
    return Tensor(array)

given = 0
def give(owned, to):
    global given
    address = c.addressof(owned[0])
    _, tensor = alive.pop(address) if address in alive else (None, copied(owned))
    given += 1
    if fault == "give" or fault == f"give {given}":
        return fail()
    c.pythonapi.Py_IncRef(c.py_object(tensor))
    to[0] = id(tensor)
    return 0

keep_release = RELEASE(release)
table = Table(1, 3, None, ALLOCATE(allocate), None, GIVE(give), LOOK(look), None)
c.pythonapi.PyCapsule_New.restype = c.py_object
c.pythonapi.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
NAME = b"dlpack_exchange_api"
tables = []  # which stay as long as the process
def capsule(of):
    tables.append(of)
    return c.pythonapi.PyCapsule_New(c.addressof(of), NAME, None)
Tensor.__dlpack_c_exchange_api__ = capsule(table)

settings = {"level": -1}
def mode():
    if fault == "interrupt":
        raise KeyboardInterrupt
    if fault == "mode fails":
        raise RuntimeError
    return fault == "mode"
watches = True
is_unlocked = False
def unlocked():
    return is_unlocked
def watched():
    return watches

NONE = (bool, bool, bool)
class None_: pass
class Old: __dlpack_c_exchange_api__ = capsule(Table(1, 2))
class Next: __dlpack_c_exchange_api__ = capsule(Table(2, 0))
class Blind: __dlpack_c_exchange_api__ = capsule(Table(1, 3))
for kind in (None_, Old, Next, Blind):
    assert _native.take_tensors((kind,), (), (), bool, (), (), NONE) is False
assert _native.take_tensors((), (), (), bool, (), (), NONE) is False
held = [sys.getrefcount(each) for each in (None_, mode, settings)]
for wrong in (((None_,), (mode,), ((settings, "level", -1),), bool, (1,), (), NONE),
              ((None_,), (mode,), (), bool, (), (mode,) * 9, NONE),
              ((1,), (), (), bool, (), (), NONE), ((None_,), (), (1,), bool, (), (), NONE),
              ((None_,), (), (([], 1, 2),), bool, (), (), NONE), ((None_,), (), (), bool, (1,), (), NONE),
              ((None_,) * 5, (), (), bool, (), (), NONE), ((None_,), (len,) * 9, (), bool, (), (), NONE),
              ([None_], (), (), bool, (), (), NONE), ((None_,), ())):
    try:
        _native.take_tensors(*wrong)
    except (TypeError, ValueError):
        continue
    raise AssertionError(wrong)

del wrong
assert [sys.getrefcount(each) for each in (None_, mode, settings)] == held
x, y = Tensor(np.array([[1.0, 5.0], [3.0, 2.0]])), Tensor(np.array([4.0, 3.0]))
assert _native.maximum(x, y) is None
for _ in range(2):  # again is no second time
    assert _native.take_tensors((Tensor,), (mode,), ((settings, "level", -1),), watched,
                                (Tensor.is_odd,), (Tensor.gradient,),
                                (Tensor.is_locked, unlocked, Tensor.write)) is True

everything = {"fill_mode": "ZERO", "return_indices": True, "return_empty": True}
ids = Tensor(np.array([0, 2]))  # offsets of one segment, too
tops, halves, top = (Tensor(np.array(values)) for values in ([5.0, 3.0], [0.5, 1.0], [[3.0, 5.0]]))
rows = Tensor(np.array([[1.0, 5.0], [0.0, 0.0], [3.0, 2.0]]))
def calls():
    yield _native.maximum(x, y), [[[4, 5], [4, 3]]]
    yield _native.maximum(x, y.array, 3.0), [[[4, 5], [4, 3]]]
    yield _native.reduce_max(x, 1, return_indices=True), [[[5], [3]], [[1], [0]]]
    yield _native.segment_max(x, ids, 3, **everything), [
        [[1, 5], [0, 0], [3, 2]], [[0, 0], [-1, -1], [1, 1]], [0, 1, 0]]
    yield _native.segment_max(x.array, ids, 3, fill_mode="ZERO"), [[[1, 5], [0, 0], [3, 2]]]
    yield _native.spread(False, 1, 2, 1, None, False, tops, halves, x), [[[0, 0.5], [1, 0]]]
    yield _native.spread(False, 2, 1, 4, None, False, x, x, x, x), [None, [[0.5, 2.5], [1.5, 1]]]
    yield _native.spread(True, 5, 1, 2, ids, False, rows, rows, x, x, x), [[[1, 5], [3, 2]], None, [[0, 0], [0, 0]]]
    yield _native.spread(True, 1, 1, 2, ids, True, top, top, x), [[[0, 5], [3, 0]]]

def arrays(results):
    return [each and each.array.tolist() for each in (results if type(results) is tuple else (results,))]

for found, expected in calls():
    assert arrays(found) == expected, (found, expected)
assert not alive and released == 0

out, wide, three = Tensor(np.zeros((2, 2))), np.zeros((2, 4)), Tensor(np.zeros((3, 2)))
def into(out, three):
    return [lambda: _native.maximum(x, y, out=out), lambda: _native.maximum(y, x.array, out=out),
            lambda: _native.maximum(x, out=out),
            lambda: _native.segment_max(x, ids, 3, fill_mode="ZERO", out=three)]
for target in (out, Tensor(wide[:, ::2]), Tensor(np.zeros((2, 2)).T)):
    results = [[4, 5], [4, 3]], [[4, 5], [4, 3]], [[1, 5], [3, 2]], [[1, 5], [0, 0], [3, 2]]
    for call, expected in zip(into(target, three), results):
        found = call()
        assert found in (target, three) and written.pop() is found and not written
        assert found.array.tolist() == expected and not alive
for wrong in (Tensor(np.zeros((2, 3))), Tensor(np.zeros(2)), Tensor(np.zeros((2, 2), np.float32)),
              np.zeros((2, 2)), 1.0, Tensor(np.broadcast_to(np.zeros(2), (2, 2))),
              Tensor(as_strided(np.zeros(3), (2, 2), (8, 8)))):
    assert all(call() is None for call in into(wrong, wrong)) and not written and not alive
assert _native.maximum(x.array, y.array, out=out) is None  # no tensor among the arrays
for flipped in (lambda array: array[::-1], lambda array: array.T):  # which share an input's memory, and are copied to
    shared = Tensor(x.array.copy())
    target = Tensor(flipped(shared.array))
    assert _native.maximum(shared, y, out=target) is target and written.pop() is target
    assert target.array.tolist() == [[4, 5], [4, 3]] and not alive
column = Tensor(np.zeros((2, 1)))
assert arrays(_native.reduce_max(x, 1, return_indices=True, out=column)) == [[[5], [3]], [[1], [0]]]
assert written.pop() is column and not written and not alive
# Segments of an inner axis and of columns are taken in another order than C's, which the results are in.
deep = Tensor(np.arange(24.0).reshape(2, 3, 4).transpose(0, 2, 1) % 7)
deep_ids = [Tensor(np.array([0, 0, 2, 2], kind)) for kind in "bBhHiIqQ"]
best = [deep.array[:, :2].max(1), np.zeros((2, 3)), deep.array[:, 2:].max(1)]
first = [deep.array[:, :2].argmax(1), np.full((2, 3), -1), deep.array[:, 2:].argmax(1) + 2]
expected = [np.stack(best, 1).tolist(), np.stack(first, 1).tolist(), [0, 1, 0]]
deep_out = Tensor(np.zeros((3, 2, 3)).transpose(1, 0, 2))
for each in deep_ids:
    found = _native.segment_max(deep, each, 3, axis=1, **everything)
    assert arrays(found) == expected and not alive and all(one.array.flags.c_contiguous for one in found)
    values, *others = _native.segment_max(deep, each, 3, axis=1, out=deep_out, **everything)
    assert values is deep_out and written.pop() is values and arrays((values, *others)) == expected and not alive
    assert arrays(_native.segment_max(deep, each, 3, axis=1, fill_mode="ZERO")) == expected[:1]
for failing in range(6):  # at each allocation
    fault = f"allocate {failing}"
    for options in ({}, {"out": deep_out}):
        done = _native.segment_max(deep, deep_ids[0], 3, axis=1, **everything, **options)
        assert (done is None or failing > 3) and not alive and len(written) == (done is not None and bool(options))
        written.clear()
fault = None
same = Tensor(x.array.copy())
assert _native.maximum(same, y, out=same) is same and same.array.tolist() == [[4, 5], [4, 3]] and written.pop() is same
fault = "locked"
assert all(call() is None for call in into(out, three)) and not written
is_unlocked = True
assert all(call() in (out, three) for call in into(out, three)) and len(written) == 4
fault, is_unlocked = "write fails", False
for call in into(out, three):
    try:
        call()
    except RuntimeError:
        continue
    raise AssertionError
fault = None
six = Tensor(np.array(6.0))
assert arrays(_native.reduce_max(x, 1, initial=six)) == [[[6], [6]]]
assert arrays(_native.segment_max(x, ids, 3, initial=six)) == [[[6, 6]] * 3]
assert arrays(_native.segment_max(x, ids, 3, fill_value=six)) == [[[1, 5], [6, 6], [3, 2]]]
for wrong in (Tensor(np.array(6)), Tensor(np.array([6.0])), Tensor(np.array(6.0, np.float32))):
    assert _native.reduce_max(x, 1, initial=wrong) is None and _native.segment_max(x, ids, 3, fill_value=wrong) is None
assert _native.reduce_max(x.array, 1, initial=six) is None
assert _native.segment_max(x.array, ids.array, 3, fill_value=six) is None
one, columns = Tensor(x.array[:, 0]), Tensor(x.array.T)
assert arrays(_native.maximum(one, y)) == [[4, 3]]  # of one axis, in C order
assert _native.maximum(columns, columns, out=out) is out
for arguments, expected in (((columns, columns), [[1, 3], [5, 2]]), ((y, columns), [[4, 3], [5, 3]]),
                            ((columns, x), [[1, 5], [5, 2]]), ((y.array, columns, 4.0), [[4, 4], [5, 4]])):
    found = _native.maximum(*arguments)
    assert found.array.flags.f_contiguous and not found.array.flags.c_contiguous
    assert found.array.tolist() == expected
assert arrays(_native.maximum(x, columns)) == [[[1, 5], [5, 2]]]  # in C order, as the first
for fault in ("allocate 0", "version"):
    assert _native.maximum(columns, columns) is None and not alive
fault = "give"
assert _native.maximum(columns, columns) is None and not alive
fault = None
written.clear()
released = 0
before = [sys.getrefcount(each) for each in (x, y, ids, tops, halves, top, rows, Tensor, mode)]
for fault in ("look", "lanes", "device", "no memory", "asks", "is_odd", "mode", "mode fails", "allocate", "version"):
    assert all(found is None for found, _ in calls()), fault
    assert not alive, fault
assert released == 9
fault, watches = "is_odd", False  # asked of each, and of no matter
assert [arrays(found) for found, _ in calls()] == [expected for _, expected in calls()]
fault, watches = "no strides", True
assert [arrays(found) for found, _ in calls()] == [expected for _, expected in calls()]
for count in (1, 2):  # what is there by then is given back
    fault, released = f"allocate {count}", 0
    assert _native.reduce_max(x, 1, return_indices=True) is None or count == 2
    assert _native.segment_max(x, ids, 3, **everything) is None and released == count + (count == 1)
    assert _native.spread(True, 7, 1, 2, ids, False, rows, rows, x, x, x) is None
    assert released == 2 * count + (count == 1)
fault, released = "layout", 0
assert _native.maximum(x, y) is None and released == 1 and not alive
fault = "interrupt"
for call in (lambda: _native.maximum(x, y), lambda: _native.maximum(y.array, x), lambda: _native.reduce_max(x),
             lambda: _native.segment_max(x, ids, 3, **everything),
             lambda: _native.spread(False, 1, 2, 1, None, False, tops, halves, x)):
    try:
        call()
    except KeyboardInterrupt:
        continue
    raise AssertionError
fault, settings["level"] = None, 0
assert _native.maximum(x, y) is None
del settings["level"]
assert _native.maximum(x, y) is None
settings["level"] = -1
for number in (1, 2, 3):
    fault, given, released = f"give {number}", 0, 0
    assert _native.segment_max(x, ids, 3, **everything) is None
    assert not alive and given + released == 3, (fault, alive, given, released)
    given = released = 0
    assert _native.spread(True, 7, 1, 2, ids, False, rows, rows, x, x, x) is None
    assert not alive and given + released == 3, (fault, alive, given, released)
fault = None
gc.collect()
assert [sys.getrefcount(each) for each in (x, y, ids, tops, halves, top, rows, Tensor, mode)] == before
class Other: pass
others = [type(f"Other{k}", (), {"__dlpack_c_exchange_api__": capsule(table)}) for k in range(4)]
assert [_native.take_tensors((kind,), (), (), bool, (), (), NONE) for kind in others] == [True, True, True, False]
print("done")
"""


def test_each_function_of_a_table() -> None:
    assert run(SCRIPT, warnings="error") == "done\n"
