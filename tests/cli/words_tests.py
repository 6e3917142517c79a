"""Tests of how things are called. Called as cli_tests.py is."""
import csv
import json
import os
import re
import struct
import zlib

import cli_tests
from cli_tests import check, main, refused, run, write_config, write_text


def test_one_of_a_thing():
    """Where a number can be 1, its word is not in the plural."""
    write_text()
    config = write_config(train={"steps": 1}, model={"layers": 1}, run={"threads": 1})
    with open("byte.csv", "w") as file:
        file.write("id,lower,upper,size\na,0,1,1\n")
    with open("byte.dag", "w") as file:
        file.write("dag 1 one\nnode 0 1 1 0 0\n")
    said = [run("plan", config), run("plan", config, "--html", "-"), run("fit", config, "--micro_batch", "1"), run("train", config), run("train", config, "--resume"),
            run("place", "byte.csv"), run("recompute", "byte.dag", "--min")]
    text = "\n".join(out + err for out, err in said)
    for phrase in ("done: 1 step in ", "nothing was left to do: the 1 step was made before; ", " 1 layer; ", "; 1 thread, ",
                   "  1 thread; ", " for 1 step", "peak         1 byte, ", "lower bound  1 byte, ",
                   "least budget 1 byte, ", "floor        1 byte: "):
        check(phrase in text, phrase, "is not in", text)
    plurals = re.findall(r".*(?<![\d.,])1 (?:steps|layers|threads|bytes|times|blocks|choices|plans|tensors|nodes)\b.*", text)
    check(not plurals, plurals)


def test_synth():
    """What it refuses, before it makes a folder."""
    refused(2, "what to make is missing: clouds OUT", "synth")
    refused(2, "clouds and texts can be made, not rain", "synth", "rain", "out")
    refused(2, "the folder to write into is missing", "synth", "clouds")
    refused(2, "one folder only, but there is also b", "synth", "clouds", "a", "b")
    refused(2, "--cue expects shadow or parallax, not sun", "synth", "clouds", "a", "--cue", "sun")
    refused(2, "--labels expects a number from 1 on, fifth or full, not 0", "synth", "clouds", "a", "--labels", "0")
    refused(2, "--seed expects a number from 0 on, not -1", "synth", "clouds", "a", "--seed", "-1")
    refused(2, "--height expects a number from 1 on, not 4x", "synth", "clouds", "a", "--height", "4x")
    refused(2, "--gsd expects a number of metres, not nan", "synth", "clouds", "a", "--gsd", "nan")
    refused(2, "shadows are up to 20 pixels long", "synth", "clouds", "a", "--gsd", "100", "--height", "18")
    refused(2, "40 flights were asked for; there can be 1 to 31", "synth", "clouds", "a", "--flights", "40")
    refused(2, "the file to write is missing: texts OUT", "synth", "texts")
    refused(2, "one file only, but there is also b", "synth", "texts", "a", "b")
    refused(2, "--count expects a number from 1 on, not 0", "synth", "texts", "a", "--count", "0")
    refused(2, "--format expects lines, jsonl or csv, not xml", "synth", "texts", "a", "--format", "xml")
    refused(2, "what is made has no option --cue", "synth", "texts", "a", "--cue", "shadow")
    refused(2, "what is made has no option --count", "synth", "clouds", "a", "--count", "5")
    check(not os.path.exists("a"), "a refused synth left a folder")


def test_draw():
    refused(2, "a text, or --file, is missing", "draw", "--out", "a.png")
    refused(2, "--out FILE is missing", "draw", "text")
    refused(2, "one text only, in quotes; there is also words", "draw", "some", "words", "--out", "a.png")
    refused(2, "a text or --file, not both; there is also text", "draw", "text", "--file", "f", "--out", "a.png")
    refused(2, "--image_size expects a number of pixels, not -5", "draw", "text", "--out", "a.png", "--image_size", "-5")
    refused(2, "a page of 39 pixels was asked for; it can have 40 to 896", "draw", "text", "--out", "a.png", "--image_size", "39")
    refused(2, "--advances expects whole or raqm, not wide", "draw", "text", "--out", "a.png", "--advances", "wide")
    with open("f.txt", "wb") as file:
        file.write(b"a\xff\n" * 20)
    refused(2, "f.txt", "draw", "--file", "f.txt", "--out", "f.txt")
    module = os.path.join(os.path.dirname(cli_tests.COMMAND), "plimsoll-draw.so")
    if not os.path.exists(module) or not os.path.exists("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"):
        print("draw: not drawn, there is no module or no font")
        return
    refused(4, "no.ttf", "draw", "text", "--out", "a.png", "--font", "no.ttf")
    refused(4, "f.txt: the font cannot be drawn with: it is no font that can be read", "draw", "text", "--out", "a.png", "--font", "f.txt")
    refused(4, "no.txt", "draw", "--file", "no.txt", "--out", "a.png")
    check(not os.path.exists("a.png"), "a refused draw left a picture")
    _, said = run("draw", "--file", "f.txt", "--out", "a.png")
    check("224 x 224 pixels, 12 of 12 lines, 29 columns\n12 bytes are no UTF-8" in said and "24 bytes of the text have no room" in said, said)
    _, said = run("draw", "\u4f60", "--out", "b.png", "--image_size", "64", "--advances", "raqm")
    check(said == "64 x 64 pixels, 1 of 2 lines, 6 columns\n1 character has no glyph in the font, drawn as its box\n", said)
    with open("b.png", "rb") as file:
        data = file.read()
    check(data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">2I2B", data[16:26]) == (64, 64, 8, 0), data[:40])
    pixels = zlib.decompress(b"".join(part for name, part in chunks(data) if name == b"IDAT"))
    check(len(pixels) == 64 * 65 and zlib.crc32(data[12:29]) == struct.unpack(">I", data[29:33])[0], "the PNG is damaged")


def chunks(data):
    at = 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        yield name, data[at + 8:at + 8 + length]
        at += 12 + length


GROUPS = {"words": [test_one_of_a_thing, test_synth, test_draw]}


def test_synth_texts():
    """Python's own readers find the same texts in each form; a seed makes others, a count only more."""
    for form in ("lines", "jsonl", "csv"):
        out, err = run("synth", "texts", form, "--format", form, "--count", "2000", "--seed", "7")
        check(out == "" and err == f"{form}: 2000 texts\n", out, err)
    with open("jsonl", encoding="utf-8") as file:
        objects = [json.loads(line) for line in file]
    with open("csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with open("lines", encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")
    texts = [o["text"] for o in objects]
    check([o["id"] for o in objects] == list(range(2000)) and [int(r["id"]) for r in rows] == list(range(2000)), "the numbers are others")
    check([r["text"] for r in rows] == texts, "the texts in CSV are others")
    check(lines[:-1] == [t.replace("\n", " ") for t in texts] and lines[-1] == "", "the texts in lines are others")
    check(all(20 <= len(t) <= 400 for t in texts) and len(set(texts)) > 1990, "lengths, or repetitions")
    check(any("\n" in t for t in texts) and any('"' in t for t in texts) and any(ord(c) > 127 for t in texts for c in t), "too plain to show anything")
    run("synth", "texts", "more", "--count", "2001", "--seed", "7")
    run("synth", "texts", "others", "--count", "2000", "--seed", "8")
    with open("more", encoding="utf-8", newline="") as more, open("others", encoding="utf-8", newline="") as others:
        check(more.read().split("\n")[:2000] == lines[:2000], "more texts are other texts")
        check(not set(others.read().split("\n")[:50]) & set(lines[:50]), "another seed makes the same texts")


GROUPS = {"words": [test_one_of_a_thing, test_synth, test_synth_texts]}

if __name__ == "__main__":
    main(GROUPS)
