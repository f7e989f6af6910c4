# Shared by the scripts for Windows: the toolchain, and a Wine that cannot reach anything but its own scratch folder.

. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

windows_target=x86_64-pc-windows-gnu
windows_dir="$root/target/windows"
wine_dir="$root/target/wine"
wine_scratch="$wine_dir/scratch" # drive P: of the prefix; no other drive but C: is there

# Debian's Rust with the sources of its library, or a target that rustup has.
need_windows_tools() {
    need_build_tools
    need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
    if rustc --print target-libdir --target "$windows_target" 2>/dev/null | xargs -r test -d; then
        windows_rust=installed
    else
        local wanted found
        wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
        found=$(/usr/bin/rustc --version 2>/dev/null | cut -d' ' -f2) || true
        [ -x /usr/bin/cargo-clippy ] && [ -d /usr/lib/rustlib/src/rust/library ] || found=0
        if [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -1)" != "$wanted" ]; then
            local package
            for package in rustc-web cargo-web rust-web-src rust-web-clippy; do
                install_package "$package" "Rust $wanted or newer with the sources of its library"
            done
        fi
        windows_rust=debian
    fi
}

# cargo for Windows: windows_cargo LIBRARIES COMMAND ARGS...; LIBRARIES are the parts of std that are built where there is no installed target.
windows_cargo() {
    local std=$1 command=$2
    shift 2
    local args=(--target "$windows_target" --target-dir "$windows_dir" --locked "$@")
    if [ "$windows_rust" = debian ]; then
        PATH="/usr/bin:$PATH" RUSTC_BOOTSTRAP=1 /usr/bin/cargo "$command" -Z "build-std=$std" "${args[@]}"
    else
        cargo "$command" "${args[@]}"
    fi
}

# A Wine prefix without a way to the files of this machine: a bug of a cleanup must not find the home folder.
need_wine() {
    [ -x /usr/lib/wine/wine64 ] || need no-such-program-wine64 wine64
    need wine wine
    export WINEPREFIX="$wine_dir/prefix" WINEDEBUG=-all WINEARCH=win64 WINEDLLOVERRIDES="mscoree,mshtml="
    [ -e "$wine_dir/ready" ] && return
    say "preparing Wine"
    rm -rf "$wine_dir"
    mkdir -p "$wine_scratch"
    env -u DISPLAY wineboot -i >/dev/null 2>&1
    env -u DISPLAY wine reg add 'HKCU\Software\Wine' /v Version /d win10 /f >/dev/null 2>&1
    wineserver -w
    # std takes its random numbers from a DLL that Wine 8 lacks
    x86_64-w64-mingw32-gcc -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" \
        scripts/windows/bcryptprimitives.c -ladvapi32
    local link
    for link in "$WINEPREFIX"/dosdevices/*; do
        case ${link##*/} in c:) ;; *) rm -f "$link" ;; esac
    done
    ln -s "$wine_scratch" "$WINEPREFIX/dosdevices/p:"
    for link in "$WINEPREFIX"/drive_c/users/*/*; do
        if [ -L "$link" ]; then rm "$link" && mkdir "$link"; fi
    done
    touch "$wine_dir/ready"
}
