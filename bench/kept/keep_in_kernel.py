#!/usr/bin/env python3
"""A prototype: an XDP program keeps the last packet of each visitor of a foreign agent. `make kept-packets` runs it.

The daemon has no data path in the kernel, so nothing uses this program. It answers two questions before one is made: can a data path
keep the last packet without handing each packet to user space, and what does that cost?

Three programs handle a packet of IP in IP to a care-of address. All find the visitor of the inner packet in a hash map, and count the
packet.

- `forward` then ends: a data path would send the packet.
- `keep` also copies the inner packet into the visitor's entry of an array map, with two slots. It writes the slot that is not valid,
  and then makes it the valid one. So a reader never sees half a packet, unless two packets arrive while it reads; the number of the
  packet, read before and after, shows that.
- `hand` passes the inner packet to user space by a ring buffer, as a data path must if a role keeps the packets.

The kernel runs each program many times and measures the time (BPF_PROG_TEST_RUN). The visitors take turns: a counter chooses the
visitor, because a test run has only one packet. Then the kept packet is read, and compared. The programs are assembled here, so no
compiler is needed. It needs root. Exit status 1: a program was refused, or the kept packet is another one.
"""

import ctypes
import os
import statistics
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, PROG_LOAD, TEST_RUN = 0, 1, 2, 5, 10
HASH, ARRAY, RINGBUF = 1, 2, 27
XDP = 6

ROOM = 1500  # bytes of a slot
# An entry of the array: the number of the last packet, its length in each slot, and two slots. The valid slot is number & 1.
ENTRY = 8 + 2 * 8 + 2 * ROOM
INNER = 14 + 20  # where the inner packet begins: behind Ethernet and the outer header


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes + bytes(max(0, 144 - len(attributes))))
    result = LIBC.syscall(SYS_BPF, command, buffer, len(buffer))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result, buffer


def create(kind, key, value, entries):
    return bpf(MAP_CREATE, struct.pack("<IIIII", kind, key, value, entries, 0))[0]


def update(fd, key, value):
    key, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value, len(value))
    bpf(MAP_UPDATE, struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))


def lookup(fd, key, size):
    key, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(size)
    bpf(MAP_LOOKUP, struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
    return value.raw


class Assembler:
    """Instructions of eBPF (RFC 9669) with labels."""

    def __init__(self):
        self.code, self.labels, self.jumps = [], {}, []

    def emit(self, opcode, dst=0, src=0, offset=0, value=0):
        self.code.append((opcode, dst, src, offset, value))

    def label(self, name):
        self.labels[name] = len(self.code)

    def jump(self, opcode, target, dst=0, src=0, value=0):
        self.jumps.append((len(self.code), target))
        self.emit(opcode, dst, src, 0, value)

    def map(self, dst, fd):  # the address of a map: two instructions
        self.emit(0x18, dst, 1, 0, fd)
        self.emit(0)

    def call(self, helper):
        self.emit(0x85, value=helper)

    def bytes(self):
        code = list(self.code)
        for at, target in self.jumps:
            opcode, dst, src, _, value = code[at]
            code[at] = (opcode, dst, src, self.labels[target] - at - 1, value)
        return b"".join(struct.pack("<BBhi", op, dst | src << 4, off, val) for op, dst, src, off, val in code)


MOV, MOVI, ADDI, ADD, ANDI, AND, SUB = 0xBF, 0xB7, 0x07, 0x0F, 0x57, 0x5F, 0x1F
LDW, LDDW, STW, STDW, LDH = 0x61, 0x79, 0x63, 0x7B, 0x69
JEQI, JGT, JNEI, JGTI, JLTI = 0x15, 0x2D, 0x55, 0x25, 0xA5
LOOKUP, LOAD_BYTES, RESERVE, SUBMIT, DISCARD = 1, 189, 131, 132, 133


def program(what, visitors, entries, counter, ring, mask):
    a = Assembler()
    a.emit(MOV, 6, 1)  # r6: the context
    a.emit(LDW, 2, 6, 0)  # data
    a.emit(LDW, 3, 6, 4)  # data_end
    a.emit(MOV, 4, 2)
    a.emit(ADDI, 4, value=INNER + 20)
    a.jump(JGT, "pass", 4, 3)
    a.emit(0x71, 4, 2, 14 + 9)  # the outer protocol: IP in IP
    a.jump(JNEI, "pass", 4, value=4)
    a.emit(LDW, 7, 2, INNER + 16)  # r7: the inner destination
    a.emit(SUB, 3, 2)
    a.emit(ADDI, 3, value=-INNER)
    a.emit(MOV, 8, 3)  # r8: the length of the inner packet
    # The counter chooses the visitor: its home address is the inner destination plus this number (in the last byte order).
    a.emit(MOVI, 4, value=0)
    a.emit(STW, 10, 4, -4)
    a.map(1, counter)
    a.emit(MOV, 2, 10)
    a.emit(ADDI, 2, value=-4)
    a.call(LOOKUP)
    a.jump(JEQI, "pass", 0)
    a.emit(LDDW, 4, 0, 0)
    a.emit(MOV, 5, 4)
    a.emit(ADDI, 5, value=1)
    a.emit(STDW, 0, 5, 0)
    a.emit(ANDI, 4, value=mask)
    a.emit(ADD, 7, 4)
    a.emit(STW, 10, 7, -8)
    a.map(1, visitors)
    a.emit(MOV, 2, 10)
    a.emit(ADDI, 2, value=-8)
    a.call(LOOKUP)
    a.jump(JEQI, "pass", 0)
    a.emit(LDW, 4, 0, 0)  # the number of the visitor
    a.emit(STW, 10, 4, -12)
    a.emit(LDDW, 5, 0, 8)  # the number of packets
    a.emit(ADDI, 5, value=1)
    a.emit(STDW, 0, 5, 8)
    if what == "keep":
        a.map(1, entries)
        a.emit(MOV, 2, 10)
        a.emit(ADDI, 2, value=-12)
        a.call(LOOKUP)
        a.jump(JEQI, "pass", 0)
        a.emit(MOV, 9, 0)  # r9: the entry
        a.jump(JLTI, "pass", 8, value=1)
        a.jump(JGTI, "pass", 8, value=ROOM)
        a.emit(LDDW, 4, 9, 0)
        a.emit(ADDI, 4, value=1)
        a.emit(ANDI, 4, value=1)
        a.emit(MOV, 3, 9)
        a.jump(JEQI, "first", 4, value=0)
        a.emit(STDW, 9, 8, 16)
        a.emit(ADDI, 3, value=24 + ROOM)
        a.jump(0x05, "copy")
        a.label("first")
        a.emit(STDW, 9, 8, 8)
        a.emit(ADDI, 3, value=24)
        a.label("copy")
        a.emit(MOV, 1, 6)
        a.emit(MOVI, 2, value=INNER)
        a.emit(MOV, 4, 8)
        a.call(LOAD_BYTES)
        a.jump(JNEI, "pass", 0, value=0)
        a.emit(LDDW, 4, 9, 0)  # the slot is complete: it becomes the valid one
        a.emit(ADDI, 4, value=1)
        a.emit(STDW, 9, 4, 0)
    if what == "hand":
        a.map(1, ring)
        a.emit(MOVI, 2, value=ROOM)
        a.emit(MOVI, 3, value=0)
        a.call(RESERVE)
        a.jump(JEQI, "pass", 0)
        a.emit(MOV, 9, 0)
        a.jump(JLTI, "discard", 8, value=1)
        a.jump(JGTI, "discard", 8, value=ROOM)
        a.emit(MOV, 1, 6)
        a.emit(MOVI, 2, value=INNER)
        a.emit(MOV, 3, 9)
        a.emit(MOV, 4, 8)
        a.call(LOAD_BYTES)
        a.emit(MOV, 1, 9)
        a.emit(MOVI, 2, value=0)
        a.call(SUBMIT)
        a.jump(0x05, "pass")
        a.label("discard")
        a.emit(MOV, 1, 9)
        a.emit(MOVI, 2, value=0)
        a.call(DISCARD)
    a.label("pass")
    a.emit(MOVI, 0, value=2)  # XDP_PASS
    a.emit(0x95)
    return a.bytes()


def load(code):
    text, license = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(1 << 16)
    fields = (XDP, len(code) // 8, ctypes.addressof(text), ctypes.addressof(license), 1, len(log), ctypes.addressof(log))
    try:
        return bpf(PROG_LOAD, struct.pack("<IIQQIIQ", *fields))[0]
    except OSError:
        print(log.value.decode(), file=sys.stderr)
        raise


def run(fd, packet, repeat):
    """Returns the mean time of one run in nanoseconds."""
    data = ctypes.create_string_buffer(packet, len(packet))
    out = ctypes.create_string_buffer(len(packet) + 256)
    attributes = struct.pack(
        "<IIIIQQII", fd, 0, len(packet), len(out), ctypes.addressof(data), ctypes.addressof(out), repeat, 0
    )
    _, buffer = bpf(TEST_RUN, attributes)
    retval, duration = struct.unpack_from("<I", buffer.raw, 4)[0], struct.unpack_from("<I", buffer.raw, 36)[0]
    assert retval == 2, retval
    return duration


def frame(size):
    inner = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, size, 7, 0x4000, 63, 17, 0) + bytes([10, 2, 0, 2]))
    inner += bytes([10, 16, 0, 0]) + os.urandom(size - 20)
    outer = struct.pack(">BBHHHBBH", 0x45, 0, size + 20, 1, 0, 64, 4, 0) + bytes([10, 1, 0, 2, 10, 3, 0, 1])
    return bytes([2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 9, 8, 0]) + outer + bytes(inner)


def measure(count, size):
    # The home addresses follow from the counter, which is added in the order of the machine.
    visitors, entries = create(HASH, 4, 16, count), create(ARRAY, 4, ENTRY, count)
    counter, ring = create(ARRAY, 4, 8, 1), create(RINGBUF, 0, 0, 1 << 24)
    packet = frame(size)
    (base,) = struct.unpack_from("<I", packet, INNER + 16)
    for number in range(count):
        update(visitors, struct.pack("<I", base + number), struct.pack("<IIQ", number, 0, 0))
    programs = {
        what: load(program(what, visitors, entries, counter, ring, count - 1)) for what in ["forward", "keep", "hand"]
    }
    times = {what: [] for what in programs}
    for _ in range(9):
        for what, fd in programs.items():
            repeat = 100_000
            if what == "hand":  # nothing reads, so the ring must have room
                os.close(fd)
                ring = create(RINGBUF, 0, 0, 1 << 24)
                fd = programs[what] = load(program(what, visitors, entries, counter, ring, count - 1))
                repeat = (1 << 24) // (ROOM + 16) - 1
            times[what].append(run(fd, packet, repeat))
    # One more run for each visitor, and then each must have this packet in its valid slot.
    packet = frame(size)
    run(programs["keep"], packet, 2 * count)
    for number in {0, count // 2, count - 1}:
        entry = lookup(entries, struct.pack("<I", number), (ENTRY + 7) // 8 * 8)
        last, *lengths = struct.unpack_from("<QQQ", entry)
        at = 24 + (last & 1) * ROOM
        kept = entry[at : at + lengths[last & 1]]
        if kept != packet[INNER:]:
            sys.exit(f"visitor {number}: the kept packet of {len(kept)} bytes is not the last one")
    return {what: statistics.median(all) for what, all in times.items()}


def main():
    if os.geteuid() != 0:
        sys.exit("it needs root: only root may load programs into the kernel")
    print("visitors  bytes  forward  keep  hand to user space (ns per packet, without the work of user space)")
    for count, size in [(1, 1480), (1, 100), (1024, 1480), (8192, 1480)]:
        all = measure(count, size)
        print(f"{count:>8}  {size:>5}  {all['forward']:>7}  {all['keep']:>4}  {all['hand']:>4}")


main()
