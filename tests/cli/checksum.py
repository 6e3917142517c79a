"""xxh64, for tests that check a checksum or write one."""
import struct


def xxh64(data):
    """The checksum of all that Plimsoll writes, seed 0, written down from the algorithm's description."""
    mask, p = (1 << 64) - 1, (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
    rotl = lambda x, n: (x << n | x >> 64 - n) & mask
    mix = lambda lane, word: rotl((lane + word * p[1]) & mask, 31) * p[0] & mask
    words = lambda at, form: struct.unpack_from(form, data, at)
    at, lanes = 0, [p[0] + p[1] & mask, p[1], 0, -p[0] & mask]
    while at + 32 <= len(data):
        lanes = [mix(lane, word) for lane, word in zip(lanes, words(at, "<4Q"))]
        at += 32
    total = sum(rotl(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & mask if at else p[4]
    for lane in lanes if at else ():
        total = ((total ^ mix(0, lane)) * p[0] + p[3]) & mask
    total = total + len(data) & mask
    while at + 8 <= len(data):
        total, at = (rotl(total ^ mix(0, words(at, "<Q")[0]), 27) * p[0] + p[3]) & mask, at + 8
    if at + 4 <= len(data):
        total, at = (rotl(total ^ words(at, "<I")[0] * p[0] & mask, 23) * p[1] + p[2]) & mask, at + 4
    for byte in data[at:]:
        total = rotl(total ^ byte * p[4] & mask, 11) * p[0] & mask
    for shift, factor in ((33, p[1]), (29, p[2]), (32, 1)):
        total = (total ^ total >> shift) * factor & mask
    return total
