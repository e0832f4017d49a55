# shellcheck shell=bash
# How the built-in programs are built: sourced by build-programs and check-programs.
#
# The same bytes come out on every machine with the same compilers: paths are remapped, and lab/wire is reached through
# a symbolic link inside fixtures/bpf.

bpf_rustc=${XDPLAB_BPF_RUSTC:-/usr/bin/rustc}
bpf_programs=(broadcast clones cpumap dispatcher extack flow peek redirect_map sink source traits traits_bench verdict watch xsk)
# Objects for the tests alone: what users have, and what can be wrong with it.
bpf_tests=(kfunc rejected section user)

# build_programs DIR: builds all programs into DIR.
build_programs() {
    local out=$1 top
    top=$(git rev-parse --show-toplevel)
    local flags="-C linker=bpf-linker -C debuginfo=2 -C link-arg=--btf -C target-cpu=v3"
    flags+=" -C link-arg=--cpu-features=+allows-misaligned-mem-access --remap-path-prefix=$top=/xdplab"
    (
        cd "$top/fixtures/bpf" || exit
        # Fetched first, so that the folders of sources are there; what they are called differs by machine.
        cargo fetch --locked --quiet
        for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
            flags+=" --remap-path-prefix=$registry=/registry"
        done
        RUSTC=$bpf_rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$top/fixtures/bpf/target RUSTFLAGS=$flags \
            cargo build --locked --release --target bpfel-unknown-none
    )
    mkdir -p "$out/test"
    local built=$top/fixtures/bpf/target/bpfel-unknown-none/release name
    for name in "${bpf_programs[@]}"; do
        llvm_objcopy --strip-debug "$built/$name" "$out/$name.o"
        chmod 644 "$out/$name.o"
    done
    for name in "${bpf_tests[@]}"; do
        llvm_objcopy --strip-debug "$built/test_$name" "$out/test/$name.o"
        chmod 644 "$out/test/$name.o"
    done
}

llvm_objcopy() {
    local tool
    for tool in llvm-objcopy-22 /usr/lib/llvm-22/bin/llvm-objcopy llvm-objcopy; do
        if command -v "$tool" >/dev/null; then
            "$tool" "$@"
            return
        fi
    done
    echo 'llvm-objcopy is missing: run ci/setup-bpf' >&2
    return 1
}

# program_versions: what the bytes depend on.
program_versions() {
    cat <<EOF
rustc = "$("$bpf_rustc" --version)"
llvm = "$("$bpf_rustc" -vV | sed -n 's/^LLVM version: //p')"
bpf-linker = "$(bpf-linker --version | sed 's/^bpf-linker //')"
aya-ebpf = "$(sed -n '/^name = "aya-ebpf"$/{n;s/^version = "\(.*\)"/\1/p}' "$(git rev-parse --show-toplevel)/fixtures/bpf/Cargo.lock")"
EOF
}
