"""What the cache of pages keeps, written down a second time: values in two orders of use, those on trial and those that stay,
bounded in bytes. And the module itself (modules/cache.c), called without Plimsoll."""
import collections
import ctypes

KEY_BYTES, MEMORY_BYTES, PAGE_BYTES, TRIAL_SHARE, STAYS_AT_ONCE = 16, 1 << 20, 4096, 16, 32
OK, NONE, DAMAGED, FAILED = range(4)


class Reference:
    def __init__(self, bytes_max):
        self.bytes_max, self.staying, self.trial, self.turn = bytes_max, collections.OrderedDict(), collections.OrderedDict(), 0

    def bytes(self):
        return sum(self.staying.values()) + sum(self.trial.values())

    def keys(self):
        return self.staying.keys() | self.trial.keys()

    def get(self, key):
        if key in self.trial:
            self.staying[key] = self.trial.pop(key)
        if key not in self.staying:
            return False
        self.staying.move_to_end(key)
        return True

    def put(self, key, cost):
        if key in self.keys() or cost > self.bytes_max:
            return
        share, on_trial = self.bytes_max // TRIAL_SHARE, False
        if self.bytes() + cost > self.bytes_max and cost <= share:
            self.turn = (self.turn + 1) % STAYS_AT_ONCE
            on_trial = self.turn != 0
        while self.bytes() + cost > self.bytes_max:
            full = sum(self.trial.values()) + cost > share
            victims = self.trial if not self.staying or (on_trial and full and self.trial) else self.staying
            victims.popitem(last=False)
        (self.trial if on_trial else self.staying)[key] = cost


class Plain:
    """Least recently used, and nothing else: what a scan does to it is what the other is for."""

    def __init__(self, count):
        self.count, self.kept = count, collections.OrderedDict()

    def ask(self, key):
        hit = key in self.kept
        self.kept[key] = True
        self.kept.move_to_end(key)
        if len(self.kept) > self.count:
            self.kept.popitem(last=False)
        return hit


class Facts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("values", "bytes", "used_bytes", "peak_bytes", "refused")]


WORDS, VOID, SIZE, PLACE = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)


class Functions(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32),
                ("open", ctypes.CFUNCTYPE(ctypes.c_int, VOID, SIZE, WORDS, SIZE, ctypes.POINTER(VOID), VOID, ctypes.c_size_t)),
                ("get", ctypes.CFUNCTYPE(ctypes.c_int, VOID, WORDS, VOID, SIZE, PLACE)),
                ("put", ctypes.CFUNCTYPE(ctypes.c_int, VOID, WORDS, VOID, SIZE)),
                ("why", ctypes.CFUNCTYPE(WORDS, VOID)),
                ("tell", ctypes.CFUNCTYPE(None, VOID, ctypes.POINTER(Facts))),
                ("close", ctypes.CFUNCTYPE(None, VOID)),
                ("shrink", ctypes.CFUNCTYPE(ctypes.c_int, VOID, SIZE, WORDS, SIZE, VOID, ctypes.c_size_t))]


class Cache:
    def __init__(self, module, path, file_bytes):
        self.path, self.file_bytes = path.encode(), file_bytes
        self.functions = Functions.in_dll(ctypes.CDLL(module), "pl_cache_functions")
        self.memory, self.why, self.room = ctypes.create_string_buffer(MEMORY_BYTES + 16), ctypes.create_string_buffer(160), ctypes.create_string_buffer(1 << 18)
        self.store = None

    def aligned(self):
        return (ctypes.addressof(self.memory) + 15) // 16 * 16

    def bytes_max(self):
        return self.file_bytes - self.file_bytes // 16 - 16 * PAGE_BYTES

    def open(self):
        store = VOID()
        answer = self.functions.open(self.aligned(), MEMORY_BYTES, self.path, self.file_bytes, ctypes.byref(store), ctypes.addressof(self.why), 160)
        self.store = store if answer == OK else None
        return answer

    def close(self):
        self.functions.close(self.store)
        self.store = None

    def get(self, number):
        """The value, or None."""
        bytes_ = ctypes.c_uint64()
        answer = self.functions.get(self.store, key_of(number), ctypes.addressof(self.room), 1 << 18, ctypes.byref(bytes_))
        assert answer in (OK, NONE), (answer, self.functions.why(self.store))
        return self.room.raw[:bytes_.value] if answer == OK else None

    def put(self, number, value):
        answer = self.functions.put(self.store, key_of(number), ctypes.cast(ctypes.c_char_p(value), VOID), len(value))
        assert answer in (OK, NONE), (answer, self.functions.why(self.store))
        return answer

    def facts(self):
        facts = Facts()
        self.functions.tell(self.store, ctypes.byref(facts))
        return facts

    def shrink(self, file_bytes):
        return self.functions.shrink(self.aligned(), MEMORY_BYTES, self.path, file_bytes, ctypes.addressof(self.why), 160)


def key_of(number):
    """No zero in it, which would end a text of C."""
    return bytes(1 + (number // 251**i) % 251 for i in range(KEY_BYTES))
