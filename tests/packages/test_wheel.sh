#!/bin/sh
# Installs a wheel with pip into a Debian of its own that has no compiler and none of Poise's libraries: test_wheel.sh
# WHEEL CACHE. CACHE is the archive of an empty Debian (clean_root.sh). For root.
set -eu
wheel=$(realpath "$1") cache=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/packages/clean_root.sh"
make_root "$cache"
install_in_root python3 python3-pip python3-venv
cp "$wheel" "$root/work"
cp -r "$source/examples/nano-mistral" "$root/work/model"
run_in_root sh -ec '
if command -v cc || command -v gcc || ldconfig -p | grep -E "libtbb|libfmt|libpcre2-posix|libsimdjson"; then
  echo "this root has what the wheel should bring along" >&2
  exit 1
fi
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install --no-index ./*.whl
venv/bin/pip --disable-pip-version-check check
venv/bin/python -c "
import poise
assert poise.__file__.startswith(\"/work/venv/\"), poise.__file__
poise.convert(\"model\", \"nano.gguf\")
poise.convert(\"nano.gguf\", \"small.zt\", quantize=\"group4\")  # with digests of libcrypto
assert poise.verify(\"small.zt\").ok
text = \"\".join(poise.Session(poise.open(\"small.zt\")).generate(\"One day, a mouse\", max_tokens=10))
print(poise.__version__, len(poise.open(\"nano.gguf\")), \"tensors;\", text.strip())
libraries = {line.split()[-1] for line in open(\"/proc/self/maps\") if \".so\" in line}
system = [path for path in libraries if \"poise\" not in path and \"/python3\" not in path]
print(\"of the system:\", *sorted(path.rpartition(\"/\")[2] for path in system))
"
venv/bin/pip -q --disable-pip-version-check uninstall -y poise
test -z "$(find venv -name "*poise*")"
'
echo "$(basename "$wheel") works without a compiler and without other packages"
