"""What a refusal says."""
import re


def unfolded(err):
    """As one line: the command breaks a long one where its semicolons are."""
    return err.replace("\n  ", "; ")


def plain(err):
    """The same with bytes as the library writes them: a number and no unit."""
    return re.sub(r"[0-9.]+ .B \(([0-9,]+) bytes\)", lambda m: m[1].replace(",", "") + " bytes", unfolded(err))


def needed(err):
    """Bytes that the smallest plan needs."""
    return int(re.search(r"needs [0-9.]+ .B \(([0-9,]+) bytes\)", err)[1].replace(",", ""))
