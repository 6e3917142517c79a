#!/usr/bin/env python3
"""Writes chains of thought for arch chain: sums and products modulo a small number, worked out from left to right, a
JSON object a line. No question comes twice, so those that are held out were never seen, unless --repeat allows it.

    tools/make_chains.py --count 4000 --terms 3 --modulus 10 --seed 1 > chains.jsonl
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
    parser.add_argument("--count", type=int, default=4000, help="lines")
    parser.add_argument("--terms", type=int, default=3, help="numbers of a question; steps are one fewer")
    parser.add_argument("--modulus", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", action="store_true", help="questions may come more than once")
    args = parser.parse_args()
    there_are = args.modulus * (2 * args.modulus) ** (args.terms - 1)
    if args.count > there_are and not args.repeat:
        parser.error(f"--count {args.count}: there are only {there_are} such questions; take fewer, more --terms, or --repeat")
    draw, seen = random.Random(args.seed), set()
    written = 0
    while written < args.count:
        made = chain(draw, args.terms, args.modulus)
        if args.repeat or made["question"] not in seen:
            seen.add(made["question"])
            written += 1
            print(json.dumps(made))


if __name__ == "__main__":
    main()
