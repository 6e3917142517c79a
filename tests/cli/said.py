"""What a refusal says."""
import re


def unfolded(err):
    """As one line: the command breaks a long one where its semicolons are."""
    return err.replace("\n  ", "; ")


def needed(err):
    """Bytes that the smallest plan needs."""
    return int(re.search(r"needs [0-9.]+ .B \(([0-9,]+) bytes\)", err)[1].replace(",", ""))
