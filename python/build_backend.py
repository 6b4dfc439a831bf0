"""Builds wheels of Poise (PEP 517) with CMake and Python's standard library, without downloads.

pip calls build_wheel(). If POISE_BUILD names a build directory of CMake, it is used as it is. Otherwise build/release
is used, if `make` configured it for this Python. Otherwise build/wheel is configured, and everything is compiled there.
"""

import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "poise"


def read_version():
    """Returns the version in CMakeLists.txt."""
    return re.search(r"project\(poise VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def make_tag():
    """Returns "cp311-cp311-linux_x86_64": the extension is for one version of Python, and for a Linux with its
    libraries."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def is_usable(build):
    """Returns true if a build directory makes a release of the package for this Python."""
    cache = build / "CMakeCache.txt"
    if not cache.is_file() or not (build / "python").is_dir():
        return False
    found = dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text(), re.MULTILINE))
    python = os.path.realpath(found.get("Python3_EXECUTABLE", ""))
    return (
        found.get("CMAKE_BUILD_TYPE") == "Release"
        and found.get("CMAKE_HOME_DIRECTORY") == str(ROOT)
        and found.get("POISE_PYTHON_PACKAGE", "OFF") != "OFF"
        and python == os.path.realpath(sys.executable)
    )


def choose_build_directory():
    """Returns where to build, and whether that is to be configured first."""
    named = os.environ.get("POISE_BUILD")
    if named:
        return pathlib.Path(named), False
    release = ROOT / "build" / "release"
    return (release, False) if is_usable(release) else (ROOT / "build" / "wheel", True)


def build_package():
    """Builds the extension. Returns the directory of the package with the extension."""
    build, is_new = choose_build_directory()
    if is_new:
        configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja"]
        configure += ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DPOISE_PYTHON_PACKAGE=ON"]
        subprocess.run([*configure, f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "poise_python", "-j", str(os.cpu_count())], check=True)
    return build / "python" / NAME


def make_metadata():
    lines = ["Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {read_version()}"]
    lines += ["Summary: Model weight files: open, check, convert, quantize, run", "License: Apache-2.0"]
    lines += ["Requires-Python: >=3.9", "Provides-Extra: numpy", "Requires-Dist: numpy ; extra == 'numpy'"]
    lines += ["Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (ROOT / "docs" / "python.md").read_text()


def make_wheel_file(wheel_tag):
    return f"Wheel-Version: 1.0\nGenerator: poise\nRoot-Is-Purelib: false\nTag: {wheel_tag}\n"


def list_package_files(package):
    """Returns the files of the package that a wheel has: [(name in the wheel, path)]."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    names = ("py.typed", f"_poise{suffix}")
    wanted = [path for path in sorted(package.iterdir()) if path.suffix in (".py", ".pyi") or path.name in names]
    if not any(path.name.endswith(suffix) for path in wanted):
        raise SystemExit(f"{package} has no extension for this Python: _poise{suffix}")
    return [(f"{NAME}/{path.name}", path) for path in wanted]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata of a wheel without compiling it (PEP 517). Returns its directory in metadata_directory."""
    info = pathlib.Path(metadata_directory) / f"{NAME}-{read_version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(make_metadata())
    (info / "WHEEL").write_text(make_wheel_file(make_tag()))
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel (PEP 517). Returns its name in wheel_directory."""
    return write_wheel(
        wheel_directory, [(name, path.read_bytes()) for name, path in list_package_files(build_package())], make_tag()
    )


def write_wheel(wheel_directory, contents, wheel_tag):
    """Writes a wheel of the files [(name, bytes)] with its metadata, and returns its name. The same files make the same
    bytes."""
    info = f"{NAME}-{read_version()}.dist-info"
    contents = [
        *contents,
        (f"{info}/METADATA", make_metadata().encode()),
        (f"{info}/WHEEL", make_wheel_file(wheel_tag).encode()),
    ]
    contents += [(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())]
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    name = f"{NAME}-{read_version()}-{wheel_tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow((path, f"sha256={digest}", len(data)))
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in pathlib.Path(path).suffixes else 0o644) << 16
            wheel.writestr(entry, data)
        rows.writerow((f"{info}/RECORD", "", ""))
        entry = zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o644 << 16
        wheel.writestr(entry, record.getvalue())
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


if __name__ == "__main__":  # python/build_backend.py DIRECTORY
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    print(target / build_wheel(target))
