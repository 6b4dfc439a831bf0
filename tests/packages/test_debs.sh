#!/bin/sh
# Installs Debian's packages into a Debian of their own, and does there what their users do: test_debs.sh DIRECTORY
# CACHE. DIRECTORY holds the packages (make deb), CACHE is the archive of an empty Debian (clean_root.sh). The
# transcript of README.md, programs in C, C++ and Python, and two processes of poise-mpi run; then the packages are
# removed, and no file of theirs remains. For root.
set -eu
packages=$(realpath "$1") cache=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$source/tests/packages/clean_root.sh"
make_root "$cache"
install_in_root g++ cmake make pkg-config python3-numpy diffutils
list_files >"$root/work/before"
run_in_root dpkg-query -W -f '${Package}\n' >"$root/work/packages-before"

cp "$packages"/*.deb "$root/work"
mkdir -p "$root/work/source/tests"
cp -r "$source/tests/consumer" "$source/tests/commands" "$root/work/source/tests"
run_in_root sh -c 'apt-get -q -y install ./*.deb' >"$root/work/install.log" 2>&1 || {
  tail -n 20 "$root/work/install.log" >&2
  exit 1
}
names=$(for file in "$packages"/*.deb; do dpkg-deb -f "$file" Package; done)
echo "installed:" $names

# The pages and the examples of poise-doc are those that the tests use.
run_in_root sh -ec '
cp -r /usr/share/doc/poise-doc/README.md /usr/share/doc/poise-doc/docs /usr/share/doc/poise-doc/examples source
mkdir readme
cd readme
cp -r ../source/examples .
python3 ../source/tests/commands/run_page.py ../source/README.md
python3 -c "
import poise
model = poise.open(\"nano.gguf\")
assert model[\"model.norm.weight\"].numpy().shape == (128,)
assert \"\".join(poise.Session(model).generate(\"One day, a mouse\", max_tokens=5))
"
poise run nano.gguf -p "One day, a mouse" -n 20 >one
mpirun --allow-run-as-root --oversubscribe -n 2 poise-mpi run nano.gguf -p "One day, a mouse" -n 20 >two
cmp one two
test -s /usr/share/man/man1/poise-convert.1.gz -a -s /usr/share/man/man1/poise-mpi.1.gz
test -s /usr/share/bash-completion/completions/poise -a -s /usr/share/zsh/vendor-completions/_poise
test -s /usr/share/doc/poise-doc/html/index.html
cd ..
sh source/tests/consumer/run.sh installed source c++ cc
'

run_in_root sh -c 'apt-get -q -y purge --auto-remove $*' sh $names >"$root/work/purge.log" 2>&1
list_files >"$root/work/after"
run_in_root dpkg-query -W -f '${Package}\n' >"$root/work/packages-after"
diff "$root/work/packages-before" "$root/work/packages-after"
diff "$root/work/before" "$root/work/after"
echo "removed without a trace"
