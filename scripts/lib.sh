# Shared by the scripts: where things are, and how to get what is missing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/target/venv"
cd "$root"

say() { printf '\n== %s\n' "$*"; }

# Installs Debian packages that are missing, or says which ones are.
need() { # need PROGRAM PACKAGE
    command -v "$1" >/dev/null || install_package "$2" "$1"
}

# The list of packages is fetched first: one as old as the machine's image may name releases that are too old for us.
install_package() { # install_package PACKAGE PROGRAM
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        say "installing $1 (for $2)"
        [ -n "${packages_listed:-}" ] || apt-get update -qq
        packages_listed=yes
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$1" >/dev/null
    else
        echo "$2 is missing: install it (on Debian: apt-get install $1) and try again" >&2
        exit 1
    fi
}

# A compiler and linker for the C parts of SQLite, zstd and ring.
need_build_tools() {
    command -v cargo >/dev/null || { echo "cargo is missing: install Rust from https://rustup.rs and try again" >&2; exit 1; }
    need cc gcc
    [ -e /usr/include/stdlib.h ] || need no-such-program-libc-headers libc6-dev
}

# kubectl, the Python client and pytest, in a folder of their own under target/.
need_python() {
    need python3 python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || need no-such-program-venv python3-venv
    if ! cmp -s tests/requirements.txt "$venv/requirements.txt"; then
        say "installing kubectl, the Python client and pytest into target/venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
        cp tests/requirements.txt "$venv/requirements.txt"
    fi
    export PATH="$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
}
