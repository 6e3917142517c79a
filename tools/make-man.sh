#!/bin/sh
# The man page and the shell completions, from what the command says: tools/make-man.sh PLIMSOLL FOLDER VERSION
# Writes plimsoll.1, and plimsoll.bash, _plimsoll, plimsoll.fish where `plimsoll completion SHELL` knows the shell.
# The page is the help text in man's clothes: a short line in the first column that ends with a colon opens a part of a
# section.
# The options of the configuration are said once, as plan has them, which takes those of all commands.
set -eu
command=$1
folder=$2
version=$3
mkdir -p "$folder"

ask() { "$command" "$@" </dev/null 2>/dev/null; }

# Help text -> roff, which fills its lines itself: a paragraph of the help is one again; "  left  right" with the lines
# below right is an item; any other line that begins with spaces stays as it is. Backslashes, hyphens (so that options can
# be copied) and lines that begin with a control character are escaped.
to_roff() {
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' |
        awk -v quote="'" '
        function put(text) { print (text ~ "^[." quote "]" ? "\\&" : "") text }
        /^$/ { if (item) print ".PD"; item = 0; print ".PP"; next }
        /^[A-Za-z][^:]*:$/ && length($0) < 40 { if (item) print ".PD"; item = 0; printf ".SS %s\n", substr($0, 1, length($0) - 1); next }
        /^                    / && item { sub(/^ +/, ""); put($0); next }
        /^  [^ ]/ {
            if (!item) print ".PD 0"
            item = 1
            text = substr($0, 3)
            at = match(text, /  +/)
            printf ".TP\n\\fB%s\\fR\n", at ? substr(text, 1, at - 1) : text
            if (at) put(substr(text, at + RLENGTH))
            next
        }
        { if (item) { print ".PD"; print ".PP" } item = 0; put($0) }
        END { if (item) print ".PD" }'
}

section() { # title; text on stdin
    printf '.SH %s\n' "$1"
    to_roff
}

shared='^Options of the configuration'
exit_codes='^Exit codes:'

# Subcommands: indented first words of the help, kept when the command has help for them. What one does may stand in the next line.
subcommands() {
    echo "$help" | sed -n 's/^ \{1,4\}\([a-z][a-z-]*\) .*/\1/p' | awk '!seen[$0]++'
}

if ! help=$(ask --help) && ! help=$(ask help); then
    echo "make-man.sh: $command --help gives no help, so there is no man page" >&2
    exit 0
fi

page=$folder/plimsoll.1
{
    printf '.\\" Made by tools/make-man.sh from the help of the command.\n'
    printf '.TH PLIMSOLL 1 "" "plimsoll %s" "User Commands"\n' "$version"
    printf '.ad l\n.nh\n'
    printf '.SH NAME\nplimsoll \\- trains and runs neural networks inside a memory budget\n'
    printf '.SH SYNOPSIS\n.B plimsoll\n.I command\n[\\fIarguments\\fR]\n'
    echo "$help" | sed "/$exit_codes/,\$d" | section DESCRIPTION
    for name in $(subcommands); do
        text=$(ask help "$name") || text=$(ask "$name" --help) || continue
        [ "$text" != "$help" ] || continue
        echo "$text" | sed "/$shared/,\$d" | section "plimsoll $name"
    done
    ask help plan | sed -n "/$shared/,\$p" | section "OPTIONS OF THE CONFIGURATION"
    echo "$help" | sed -n "/$exit_codes/,\$p" | section "EXIT STATUS"
    printf '.SH LICENSE\nApache License, version 2.0.\n'
    printf '.SH SEE ALSO\nThe folder docs of the source, or of the documents that are installed: config.md (every key) above all.\n'
} >"$page.tmp"
mv "$page.tmp" "$page"

completion() { # shell, file
    if ask completion "$1" >"$folder/$2.tmp" && [ -s "$folder/$2.tmp" ]; then
        mv "$folder/$2.tmp" "$folder/$2"
    else
        rm -f "$folder/$2.tmp"
    fi
}
completion bash plimsoll.bash
completion zsh _plimsoll
completion fish plimsoll.fish
