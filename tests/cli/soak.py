"""How much of a long test is done: all of it in a whole `make soak`, a share of its cases in a short one (tools/run-soak.sh)."""
import os

SHARE = int(os.environ.get("PLIMSOLL_SOAK_SHARE", "1"))  # one case in so many


def share_of(count, least=1):
    return count if SHARE == 1 else max(least, count // SHARE)


def need_all(skipped):
    """For one that cannot be shortened."""
    if SHARE > 1:
        raise skipped("takes an hour: only in a whole make soak")
