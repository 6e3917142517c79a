#!/usr/bin/env python3
"""Writes chains of thought for arch chain: sums and products modulo a small number, worked out from left to right, a
JSON object a line.

    tools/make_chains.py --count 20000 --terms 4 --modulus 7 --seed 1 > chains.jsonl
"""
import argparse
import json
import random


def chain(random, terms, modulus):
    """3+5*2: ((3+5)*2) mod 7, one step an operator."""
    value = random.randrange(modulus)
    question, steps = str(value), []
    for _ in range(terms - 1):
        sign, operand = random.choice("+*"), random.randrange(modulus)
        result = (value + operand if sign == "+" else value * operand) % modulus
        question += f"{sign}{operand}"
        steps.append(f"{value}{sign}{operand}={result}")
        value = result
    return {"question": question, "steps": steps, "answer": str(value)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=20000, help="lines")
    parser.add_argument("--terms", type=int, default=4, help="numbers of a question; steps are one fewer")
    parser.add_argument("--modulus", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    for _ in range(args.count):
        print(json.dumps(chain(draw, args.terms, args.modulus)))


if __name__ == "__main__":
    main()
