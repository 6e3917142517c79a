"""Tests of how things are called. Called as cli_tests.py is."""
import re

from cli_tests import check, main, run, write_config, write_text


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
    for phrase in ("done: 1 step in ", "nothing was left to do: the 1 step was made before; ", " 1 layer; ", " in 1 layer; ", "; 1 thread, ",
                   "  1 thread; ", "touched, 1 thread; ", " for 1 step", "peak         1 byte, ", "lower bound  1 byte, ",
                   "least budget 1 byte, ", "floor        1 byte: "):
        check(phrase in text, phrase, "is not in", text)
    plurals = re.findall(r".*(?<![\d.,])1 (?:steps|layers|threads|bytes|times|blocks|choices|plans|tensors|nodes)\b.*", text)
    check(not plurals, plurals)


GROUPS = {"words": [test_one_of_a_thing]}

if __name__ == "__main__":
    main(GROUPS)
