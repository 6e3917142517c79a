"""plimsoll fit, from outside: fit_tests.py PLIMSOLL FOLDER [GROUP|TEST]…

The oracle of what a budget buys is the command itself asked otherwise: the front's points, one budget a byte below
another, and a run of the lock file, whose ledger must be as planned."""
import html.parser
import json
import os
import re
import shutil

from cli_tests import check, environment, main, needed, read, refused, run, unfolded, write_config, write_text

CLOCK = os.environ.get("PL_PRELOAD_CLOCK")  # of tests/support/process
MODEL = {"model": {"width": 32, "layers": 2}, "train": {"micro_batch": "auto", "steps": 6, "batch_size": 16}, "run": {"threads": 2}}
SMALLER = {**MODEL, "model": {"width": 16, "layers": 1}, "train": {**MODEL["train"], "batch_size": 4}}


def configure(path="config.yaml", **sections):
    """A config whose kernels' times are in the cache, the same on every machine and whatever runs beside: those of a search under
    the clock that steps by itself. What two commands choose can then be compared: neither has measured anything."""
    write_config(path, **sections)
    if CLOCK:
        run("fit", path, "--quiet", env=environment(LD_PRELOAD=CLOCK))
    return path


def fit(*words, config=None, **options):
    out, err = run("fit", config or write_config(**MODEL), "--json", *words, **options)
    check(not CLOCK or "measuring kernels" not in err, "kernels that should be known are measured:", err)
    return json.loads(out)


def front_of(answer):
    return sorted((p for p in answer["points"] if p["front"]), key=lambda p: p["charged_bytes"])


def test_report():
    write_text()
    env = environment()
    env["XDG_CACHE_HOME"] = os.path.abspath("fresh")
    out, err = run("fit", write_config(**SMALLER), env=env)
    for part in ("Chosen", "micro-batch", "recompute", "threads", "tokens/s", "The front", "choices looked at", "config.yaml\nbatch 4 × 16 tokens; no budget"):
        check(part in out, part, "is not said:", out)
    check("measuring kernels" in err, err)


def test_page_and_lock():
    """The curve needs a front of two points at least, which is a matter of the times."""
    write_text()
    config = configure(**MODEL)
    run("fit", config, "--html", "page.html", "--lock", "plan.lock")
    page = read("page.html").decode()
    html.parser.HTMLParser().feed(page)
    check("<svg" in page and "Time against memory" in page and "http" not in page.replace("http://www.w3.org", ""), page[:500])
    check(read("plan.lock").startswith(b"plan 2\n"), "lock")
    check(run("fit", config, "--quiet", "--html", "-")[0].startswith("<!doctype html>"), "html on stdout")
    check(run("fit", config, "--quiet", "--lock", "-")[0].startswith("plan 2\n"), "lock on stdout")


def test_front_and_budgets():
    """Nothing on the front is beaten; a budget of a point's bytes gives that point or one as good; one page less gives less."""
    write_text()
    everything = fit(config=configure(**MODEL))
    front = front_of(everything)
    check(everything["schema"] == "plimsoll.fit/1" and len(front) >= 2, everything)
    for small, large in zip(front, front[1:]):
        check(small["charged_bytes"] < large["charged_bytes"] and small["seconds"] > large["seconds"], small, large)
    chosen = everything["points"][everything["chosen"]["point"]]
    check(chosen["seconds"] == min(p["seconds"] for p in front), chosen)
    before = None
    for point in front[:: max(1, len(front) // 4)]:
        # The budget is a part of the kept config, and so of the plan: the same number of digits.
        answer = fit("--budget", str(point["charged_bytes"] + 65536 * 2))["chosen"]
        check(answer["charged_bytes"] <= point["charged_bytes"] + 65536 * 2, answer, point)
        check(answer["seconds"] <= point["seconds"] * 1.0001, answer, point)
        if before:
            check(answer["seconds"] <= before["seconds"] and answer["charged_bytes"] >= before["charged_bytes"], before, answer)
        before = answer


def test_lock_is_what_runs():
    write_text()
    config = configure(**MODEL)
    budget = front_of(fit(config=config))[0]["charged_bytes"] + 65536 * 4
    answer = fit("--budget", str(budget), "--lock", "plan.lock", config=config)
    _, err = run("train", config, "--lock", "plan.lock")
    check("as planned before" in err and "As planned" in err, err)
    check(read("out/plan.lock") == read("plan.lock"), "another plan was run")
    report = json.loads(read("out/report.json"))
    check(report["planned_bytes"] == answer["chosen"]["resident_bytes"] and report["as_planned"], report["planned_bytes"])
    check(f"budget: {budget}" in read("out/config.yaml").decode() or "budget:" in read("out/config.yaml").decode(), "config")
    run("train", config, "--budget", str(budget), "--out", "other")
    check(os.path.getsize("other/plan.lock") > 0, "train with a budget")
    refused(2, r"--steps: train.steps is 7, but the plan was made for 6; leave it as it was, or plan anew", "train", config, "--lock", "plan.lock",
            "--steps", "7", "--out", "out2")
    refused(2, r"run.out is .*out2.*, but the plan was made for", "train", config, "--lock", "plan.lock", "--out", "out2")
    refused(2, r"--threads: run.threads is 1, but the plan was made for 2", "train", config, "--lock", "plan.lock", "--threads", "1", "--out", "out2")
    refused(4, r"nothing.lock", "train", config, "--lock", "nothing.lock", "--out", "out3")
    with open("broken.lock", "w") as file:
        file.write("plan 1\nnonsense\n")
    refused(4, r"broken.lock:2", "train", config, "--lock", "broken.lock", "--out", "out3")


def test_certificate_of_keys_that_need_each_other():
    """Left to the search, layer_major would be 0 and the early update impossible: that is no permission, and no failure."""
    write_text()
    config = write_config(model={"width": 16, "layers": 1}, run={"threads": 1},
                          train={"micro_batch": 4, "batch_size": 12, "steps": 1, "update_in_backward": "'on'", "layer_major": 1})
    out, err = run("fit", config, "--budget", "1MB", code=3)
    check("Nothing fits" in out and "the smallest plan needs" in err, out, err)


def test_lock_with_the_tokens_gone():
    """Tokens are made again for a plan of before; those of another text are refused."""
    write_text()
    config = configure(**MODEL)
    run("fit", config, "--lock", "plan.lock")
    check(not os.path.exists("out"), "a search leaves a folder")
    _, err = run("train", config, "--lock", "plan.lock")
    check("As planned" in err and read("out/plan.lock") == read("plan.lock"), err)
    shutil.rmtree("out")
    run("fit", config)
    with open("text.txt", "a", encoding="ascii") as file:
        file.write("and more of it\n")
    refused(4, "has changed since planning.*plan anew", "train", config, "--lock", "plan.lock")


def test_nothing_is_measured_for_a_refusal():
    write_text()
    env = environment()
    env["XDG_CACHE_HOME"] = os.path.abspath("fresh")
    for command in ("fit", "train", "plan"):
        out, err = run(command, write_config(**SMALLER), "--budget", "3MB", code=3, env=env)
        check("measuring" not in err, command, err)
        check(re.search(r"\([\d,]+ bytes\) more than the budget of 3.00 MB \(3,000,000 bytes\)", err), command, err)
    check(not any("calibration" in name for _, _, names in os.walk("fresh") for name in names), "calibration")


def test_advice_helps():
    """What a refusal says to set, where nobody had set it to something else, makes it fit."""
    write_text()
    config = configure(**{**MODEL, "train": {"micro_batch": "auto", "batch_size": 16, "steps": 2}})

    def needs(*words):
        return needed(run(*words, "--budget", "2MB", code=3)[1])

    run("train", config, "--quiet")
    budget = str(needs("eval", "out", "--micro_batch", "1") + 2 * 65536)
    _, err = run("fit", config, "--quiet", "--budget", "100KB", "--micro_batch", "16", code=3)
    check(re.search("no model fits: the process alone .*; raise the budget to", unfolded(err)), err)
    out, err = run("fit", config, "--budget", "20MB", "--width", "1024", "--micro_batch", "16", code=3)
    check("fit.allow" in out and "frozen" not in out, "a permission for what the model does not have", out)
    check(re.search("optimizer state alone are .*; make model.width or model.layers smaller$", unfolded(err).strip()), err)
    refused(3, "set train.micro_batch to 1$", "eval", "out", "--budget", budget, "--micro_batch", "16")
    run("eval", "out", "--budget", budget, "--micro_batch", "1")
    early = ("--set", "train.update_in_backward=on")
    budget = str(needs("plan", config, *early) - 2 * 65536)
    _, err = run("plan", config, *early, "--budget", budget, code=3)
    found = re.search(r"; set train.update_in_backward and train.micro_batch to auto; it fits with (.*): ([0-9.]+) MB charged$", unfolded(err).strip())
    check(found and float(found[2]) * 1e6 <= int(budget) * 1.01, err)
    run("plan", config, "--budget", budget)  # what is set to auto: leaving it out
    charged = json.loads(run("plan", config, *early, "--budget", budget, *found[1].split(), "--json")[0])["process"]["charged_bytes"]
    check(charged <= int(budget), charged, err)


def test_refused():
    write_text()
    refused(2, "a config file is missing: plimsoll fit CONFIG", "fit")
    refused(2, "--json and --html - exclude each other", "fit", write_config(), "--json", "--html", "-")
    refused(2, "--budget", "fit", write_config(), "--budget", "much")
    refused(2, "unknown option --out-lock: it is one of plimsoll plan", "fit", write_config(), "--out-lock", "x")
    refused(2, "unknown option --promptly", "fit", write_config(), "--promptly", "x")
    refused(5, "nowhere/plan.lock", "fit", write_config(**MODEL), "--lock", "nowhere/plan.lock")
    refused(2, "text.txt", "fit", write_config(**MODEL), "--lock", "text.txt")


def test_plan_feeds_another_solver():
    """The graph out of plan --json is a problem of plimsoll recompute; what the plan repeats is named after what ran first."""
    write_text()
    config = write_config(**{**MODEL, "train": {**MODEL["train"], "micro_batch": 8}})
    stored = json.loads(run("plan", config, "--json", "--set", "train.gradient_checkpointing=off")[0])
    check(all(n["recomputes"] is None for n in stored["nodes"]), "something is computed again")
    full = json.loads(run("plan", config, "--json", "--set", "train.gradient_checkpointing=full")[0])
    again = [n for n in full["nodes"] if n["recomputes"] is not None]
    check(len(again) > 10, len(again))
    for node in again:
        original = full["nodes"][node["recomputes"]]
        check(original["op"] == node["op"] and original["scope"] == node["scope"] and original["id"] < node["id"], original, node)
        check(node["phase"] == "backward" and original["phase"] == "forward", node)
    with open("plan.dag", "w") as file:
        file.write(convert(stored))
    least = json.loads(run("recompute", "plan.dag", "--min", "--json")[0])
    check(least["floor_bytes"] <= least["peak_bytes"] < least["store_all_bytes"], least)
    arena = stored["arena"]["bytes"]
    check(0.5 * arena < least["store_all_bytes"] < 2.5 * arena, least["store_all_bytes"], arena)
    middle = json.loads(run("recompute", "plan.dag", "--budget", str((least["peak_bytes"] + least["store_all_bytes"]) // 2), "--json")[0])
    check(middle["verdict"] == "fits" and middle["cost"] <= least["cost"], middle)


def test_certificate():
    """What is said to make it fit does, and what is said not to does not; the least that is named is the least that fits."""
    write_text()
    model = {**MODEL, "model": {"width": 48, "layers": 2}, "train": {**MODEL["train"], "grad_clip": 1, "batch_size": 8}}
    config = configure(**model)
    least = front_of(fit(config=config))[0]["charged_bytes"]
    out, err = run("fit", config, "--quiet", "--budget", str(least - 400000), "--html", "page.html", code=3)
    page = read("page.html").decode()
    html.parser.HTMLParser().feed(page)
    check(all(cell in page for cell in ("<td>train.grad_clip: 0</td>", "<td data-l='fits'>yes</td>", "<td data-l='fits'>no</td>")) and "Nothing fits" in page, page)
    shown = html.unescape(re.sub("<[^>]*>", " ", page)) # what the text says of it the page says, too
    for word in out[out.index("Nothing fits"):].split():
        check(word.strip("()*:") in shown or re.fullmatch(r"[0-9.]+", word), word, "is not on the page:", shown)
    for part in ("Nothing fits", "At its peak", "optimizer state", "What would change that, each alone", "train.grad_clip: 0", "fit.allow: optimizer_8bit", "The cheapest is"):
        check(part in out, part, "is not said:", out)
    check("more than the budget" in unfolded(err).strip().split("\n")[-1], err)
    found = json.loads(run("fit", config, "--quiet", "--json", "--budget", str(least - 400000), code=3)[0])
    certificate = found["certificate"]
    check(found["chosen"] is None and abs(certificate["least_bytes"] - least) <= 65536, certificate, least)
    check(sum(r["bytes"] for r in certificate["roles"]) > 0 and certificate["alive"], certificate)
    permissions = certificate["permissions"]
    check(permissions[certificate["cheapest"]]["fits"], certificate)
    tried = [permissions[certificate["cheapest"]]] + [p for p in permissions if not p["fits"]][:1]
    for permission in tried:
        words = ("--set", f"{permission['key']}={permission['value']}")
        run("plan", config, "--budget", str(least - 400000), *words, code=0 if permission["fits"] else 3)
    run("plan", config, "--budget", str(certificate["least_bytes"] + 2 * 65536))


def test_what_is_set_is_not_searched():
    """A key that says what is to be done decides it for every choice that is looked at; what is left open beside it is
    searched. (Of a budget that nothing fits, for then nothing is measured.)"""
    write_text()
    config = write_config(**{**MODEL, "train": {**MODEL["train"], "micro_batch": 1}})

    def looked_at(*words):
        points = fit("--budget", "2MB", *words, config=config, code=3)["points"]
        return {axis: {p["choice"][axis] for p in points} for axis in points[0]["choice"]}

    found = looked_at("--set", "train.layer_major_keep=2")
    check(found["threads"] == {"2"} and found["layer-major"] == {"no", "1, keep 2", "2, keep 2", "3, keep 2"}, found)
    found = looked_at("--threads", "auto", "--set", "train.layer_major=2")
    check("1" in found["threads"] and found["layer-major"] == {"2, keep 1", "2, keep 2", "2, keep 3", "2, keep 0"}, found)
    found = looked_at("--set", "train.layer_major=2", "--set", "train.layer_major_keep=3")
    check(found["layer-major"] == {"2, keep 3"}, found)
    found = looked_at("--set", "train.update_in_backward=off")
    check(found["update"] == {"at the end"} and found["layer-major"] == {"no"}, found)


def test_every_permission_is_named():
    """However small the budget is: a permission that does not help is one all the same."""
    write_text()
    given = {"micro_batch": 16, "gradient_checkpointing": "off", "layer_major": 1, "layer_major_keep": 1, "feed_forward_rows": 0, "update_in_backward": "off"}
    config = write_config(**{**MODEL, "train": {**MODEL["train"], **given}})
    hopeless = fit("--budget", "100KB", config=config, code=3)["certificate"]
    named = {(p["key"], p["value"]) for p in hopeless["permissions"]}
    check({("fit.allow", "optimizer_8bit"), ("run.threads", "auto")} | {("train." + key, "auto") for key in given} <= named, named)
    check(hopeless["cheapest"] is None and not any(p["fits"] for p in hopeless["permissions"]), hopeless)
    out, _ = run("fit", write_config(**MODEL), "--quiet", "--budget", "100KB", code=3)
    check("fit.allow: optimizer_8bit" in out and "Nothing more could be" not in out, out)


def test_allowed_state_is_kept():
    """What the search turned on by leave is in the kept config, so that a resumed run does the same."""
    write_text()
    model = {**MODEL, "model": {"width": 48, "layers": 2}, "train": {**MODEL["train"], "grad_clip": 1, "batch_size": 8, "checkpoint_every": 3}, "fit": {"allow": "[optimizer_8bit]"}}
    config = write_config(**model)
    model["fit"] = {}
    refused_at = front_of(fit(config=configure("plain.yaml", **model)))[0]["charged_bytes"] - 200000
    run("train", config, "--budget", str(refused_at))
    kept = read("out/config.yaml").decode()
    check("optimizer_state: 8bit" in kept, kept)
    run("train", "out", "--resume", "--budget", str(refused_at))


def precisions_of(answer):
    return {p["choice"]["precision"] for p in answer["points"]}


def test_precision_by_leave():
    """fit.allow lets the search try another precision where the key is left open; what it took stands in the kept config, and a key that is set is no
    question. The bytes are such that f32 does not fit: then the clock has no say."""
    write_text()
    model = {**MODEL, "model": {"width": 32, "layers": 4}, "train": {"micro_batch": 16, "steps": 6, "batch_size": 16, "checkpoint_every": 3,
             "gradient_checkpointing": "off", "layer_major": 0, "feed_forward_rows": 0}}
    plain = fit(config=configure("plain.yaml", **model))
    check(precisions_of(plain) == {"f32"} and plain["step"]["bf16_seconds"] > 0, plain["step"])  # estimated: its kernels were never measured
    least = front_of(plain)[0]["charged_bytes"]
    allowed = configure(**{**model, "fit": {"allow": "[bf16, fp16]"}})
    answer = fit(config=allowed)
    check(precisions_of(answer) == {"f32", "bf16", "fp16"}, precisions_of(answer))
    check(all(p["choice"]["update"] == "at the end" for p in answer["points"] if p["choice"]["precision"] == "fp16"), "fp16 updates early")
    budget = str((least + front_of(answer)[0]["charged_bytes"]) // 2)
    refused(3, "more than the budget", "plan", "plain.yaml", "--budget", budget)
    refused(3, "more than the budget", "plan", allowed, "--budget", budget, "--mixed_precision", "off")
    # By now the kernels of bf16 were measured: without leave it is predicted from them, and says the same as the choice that differs in nothing else.
    plain = fit(config="plain.yaml")
    check(precisions_of(plain) == {"f32"} and plain["step"]["bf16_seconds"] > 0 and plain["step"]["bf16_least_bytes"] > 0, plain["step"])
    chosen = plain["points"][plain["chosen"]["point"]]["choice"]
    same = [p for p in answer["points"] if p["choice"] == {**chosen, "precision": "bf16"}]
    check(len(same) == 1 and abs(same[0]["seconds"] / plain["step"]["bf16_seconds"] - 1) < 1e-6, same, plain["step"])
    check(re.search(r"bf16 +[0-9.]+ % (less|more) time( .estimated.)?, with at least", run("fit", "plain.yaml", "--quiet")[0]), "what bf16 would bring is not said")
    taken = fit("--budget", budget, "--lock", "plan.lock", config=allowed)
    word = taken["points"][taken["chosen"]["point"]]["choice"]["precision"]
    check(word in ("bf16", "fp16"), word)
    refused(2, f"train.mixed_precision is off, but the plan was made for {word}", "train", allowed, "--lock", "plan.lock", "--mixed_precision", "off")
    run("train", allowed, "--quiet", "--lock", "plan.lock")
    check(f"mixed_precision: {word}" in read("out/config.yaml").decode(), read("out/config.yaml").decode())
    run("train", "out", "--resume", "--quiet", "--budget", "none")
    check(json.loads(run("plan", "out", "--json", "--budget", "none")[0])["model"]["precision"] in (word, "f16"), "the kept config says another precision")
    run("train", allowed, "--resume", "--quiet", "--steps", "8", "--budget", "none")
    check(f"mixed_precision: {word}" in read("out/config.yaml").decode(), "a resumed run goes on in another precision")
    run("train", allowed, "--quiet", "--out", "free")
    check("mixed_precision: off" in read("free/config.yaml").decode(), "without a budget nothing is searched")
    out, _ = run("fit", write_config("plain.yaml", **model), "--quiet", "--budget", budget, code=3)
    check("fit.allow: bf16" in out, out)
    out, _ = run("fit", write_config("plain.yaml", **model), "--quiet", "--budget", budget, "--mixed_precision", "off", code=3)
    check("train.mixed_precision: bf16" in out and "fit.allow: bf16" not in out, out)


from plan_dag import convert  # noqa: E402  (beside this file)

GROUPS = {"fit": [test_advice_helps, test_every_permission_is_named, test_what_is_set_is_not_searched, test_certificate, test_allowed_state_is_kept, test_plan_feeds_another_solver, test_report, test_page_and_lock, test_front_and_budgets, test_certificate_of_keys_that_need_each_other, test_lock_is_what_runs, test_lock_with_the_tokens_gone, test_nothing_is_measured_for_a_refusal, test_precision_by_leave, test_refused]}

if __name__ == "__main__":
    main(GROUPS, own_cache=True)
