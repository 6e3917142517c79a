"""Runs the tests that need other programs: oracles.py SHOW_MODEL

PL_OWN_PYTHON names a Python with torch, transformers and numpy, PL_OWN_MODELS a folder with own.py and make_models.py. What
is missing is skipped, with the reason."""
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = "llama llama3 smollm2 mistral qwen2 qwen3 smollm3 gemma gemma2 gemma3 gpt2 phi3".split()


def run(python, *args, **options):
    done = subprocess.run([python, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(args)}\n{done.stdout[-3000:]}")
    return done.stdout.strip().splitlines()[-1]


def made_models(python, show_model, own):
    environment = dict(os.environ, PYTHONPATH=own)
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            extra = ["--yarn", "--shard", "20000", "--dtype", "bfloat16"] if family == "qwen2" else []
            run(python, os.path.join(own, "make_models.py"), "--family", family, "--out", folder, "--steps", "1",
                "--no-lcpp", *extra, env=environment)
            models = glob.glob(folder + "/*/hf") + sorted(glob.glob(folder + "/*/gguf/*.gguf"))
            run(python, os.path.join(HERE, "own_oracle.py"), show_model, *models, env=environment)
            print(f"ok {family}: {len(models)} models", flush=True)


def main():
    show_model, python, own = sys.argv[1], os.environ.get("PL_OWN_PYTHON"), os.environ.get("PL_OWN_MODELS")
    if not python:
        print("skipped: PL_OWN_PYTHON does not name a Python with torch and transformers")
        return 77
    print(run(python, os.path.join(HERE, "transformers_oracle.py"), show_model, "60"))
    if own:
        made_models(python, show_model, own)
    else:
        print("skipped: PL_OWN_MODELS does not name a folder with own.py and make_models.py")
    return 0


sys.exit(main())
