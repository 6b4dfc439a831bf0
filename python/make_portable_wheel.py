#!/usr/bin/env python3
"""Makes a wheel that needs no other package: make_portable_wheel.py DIRECTORY. Needs patchelf, binutils and ldd.

The wheel holds the libraries that the extension links, as auditwheel arranges them: in poise.libs/, under names with a
digest, so that no other copy in the process is mistaken for them. Libraries that every Linux for desktops and servers
has stay outside (PEP 600). The tag manylinux_2_N promises that the wheel runs with glibc 2.N and later: N is the
smallest number that suffices for all symbols of glibc and of GCC's libraries that the files in the wheel use.
"""

import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

import build_backend

# The part of auditwheel's list (lib_whitelist) that Poise could link.
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|ld-linux.*)\.so\.\d+")
# {kind of symbols: {version: N}}: manylinux_2_N is the first policy that allows symbols up to this version.
# https://github.com/pypa/auditwheel/blob/main/src/auditwheel/policy/manylinux-policy.json
FIRST_GLIBC = {
    "GLIBCXX": {(3, 4, 19): 17, (3, 4, 22): 24, (3, 4, 24): 27, (3, 4, 28): 31, (3, 4, 29): 34, (3, 4, 30): 35},
    "CXXABI": {(1, 3, 7): 17, (1, 3, 10): 24, (1, 3, 11): 27, (1, 3, 12): 31, (1, 3, 13): 34},
    "GCC": {(4, 8, 0): 17, (7, 0, 0): 28, (12, 0, 0): 35},
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_libraries(path):
    """Returns {name: path} of the libraries that a file needs, directly or through others, without the system's."""
    found = {}
    for line in run("ldd", path).splitlines():
        name, _, rest = line.strip().partition(" => ")
        if SYSTEM_LIBRARIES.fullmatch(pathlib.Path(name.split(" ")[0]).name) or name.startswith("linux-vdso"):
            continue
        if not rest.startswith("/"):
            raise SystemExit(f"{path} needs {name}, which is not installed")
        found[name] = pathlib.Path(rest.split(" ")[0])
    return found


def list_needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))


def find_glibc(path):
    """Returns N of the oldest glibc 2.N that can load a file."""
    minor = 17  # manylinux_2_17 is the oldest policy in use
    for kind, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", run("readelf", "-V", path)):
        numbers = tuple(map(int, version.split(".")))
        if kind == "GLIBC":
            minor = max(minor, numbers[1])
            continue
        allowed = [first for largest, first in sorted(FIRST_GLIBC[kind].items()) if numbers <= largest]
        if not allowed:
            raise SystemExit(f"{path} asks for {kind}_{version}: add the policy that allows it to FIRST_GLIBC")
        minor = max(minor, allowed[0])
    return minor


def find_licence(path):
    """Finds the copyright file of the Debian package that a library belongs to; None if there is none."""
    for name in (path, path.resolve()):
        owner = subprocess.run(["dpkg-query", "-S", f"*{name.name}"], capture_output=True, text=True).stdout
        for line in owner.splitlines():
            package, _, file = line.partition(": ")
            if pathlib.Path(file).exists() and pathlib.Path(file).resolve() == path.resolve():
                return pathlib.Path("/usr/share/doc") / package.split(":")[0] / "copyright"
    return None


def bundle(extension, directory):
    """Copies an extension and its libraries into a directory, and makes them find each other there. Returns the copies
    and the originals: (extension, [library], {name: path})."""
    libraries = find_libraries(extension)
    names = {}
    for name, path in libraries.items():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        stem, _, suffix = name.partition(".so")
        names[name] = f"{stem}-{digest}.so{suffix}"
    copies = []
    sources = [(extension, extension.name, "$ORIGIN/../poise.libs")]
    sources += [(path, names[name], "$ORIGIN") for name, path in libraries.items()]
    for path, name, places in sources:
        copy = directory / name
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o755)
        run("strip", "--strip-unneeded", copy)
        # Each call makes one change, because patchelf 0.14 loses all but one of several changes.
        for needed in list_needed(path):
            if needed in names:
                run("patchelf", "--replace-needed", needed, names[needed], copy)
        if path != extension:
            run("patchelf", "--set-soname", name, copy)
        run("patchelf", "--force-rpath", "--set-rpath", places, copy)
        foreign = [needed for needed in list_needed(copy) if needed not in names.values()]
        if not all(map(SYSTEM_LIBRARIES.fullmatch, foreign)):
            raise SystemExit(f"{copy} still needs {foreign}")
        copies.append(copy)
    return copies[0], copies[1:], libraries


def main(target):
    target.mkdir(parents=True, exist_ok=True)
    files = build_backend.list_package_files(build_backend.build_package())
    with tempfile.TemporaryDirectory() as directory:
        (extension,) = [path for name, path in files if path.suffix == ".so"]
        changed, bundled, libraries = bundle(extension, pathlib.Path(directory))
        contents = [(name, (changed if path == extension else path).read_bytes()) for name, path in files]
        contents += [(f"poise.libs/{path.name}", path.read_bytes()) for path in sorted(bundled)]
        minor = max(map(find_glibc, [changed, *bundled]))
    info = f"poise-{build_backend.read_version()}.dist-info"
    for name, path in sorted(libraries.items()):
        licence = find_licence(path)
        if licence is None:
            raise SystemExit(f"{path} belongs to no installed package, so that its licence is not known")
        contents.append((f"{info}/licenses/{name}/copyright", licence.read_bytes()))
    python = build_backend.make_tag().rsplit("-", 1)[0]
    name = build_backend.write_wheel(target, contents, f"{python}-manylinux_2_{minor}_{platform.machine()}")
    print(target / name)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
