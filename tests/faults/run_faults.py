"""Lets every system call of a convert and an edit go wrong, one at a time and where one leads to another, kills them at
random moments, and truncates a file that is being read.

    run_faults.py POISE INJECTOR EXAMPLES [--kills N] [--seed N]

Afterwards the target is the old file, the new one, or not there, as the exit code says, and nothing else lies in the
directory.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

FATAL = {
    "open": ["EACCES"],
    "write": ["ENOSPC", "EIO"],
    "pwrite": ["ENOSPC", "EIO"],
    "pread": ["EIO"],
    "copy_file_range": ["ENOSPC", "EIO"],
    "fsync": ["EIO"],
    "fallocate": ["ENOSPC"],
    "rename": ["EACCES"],
    "renameat2": ["EXDEV"],
    "linkat": ["EACCES", "ENOSPC"],
    "mmap": ["ENOMEM"],
    "pthread_create": ["EAGAIN"],
    "malloc": ["ENOMEM"],
}
HARMLESS = {
    "tmpfile": ["EOPNOTSUPP", "EACCES"],
    "close": ["EIO", "EINTR"],
    "write": ["SHORT", "EINTR"],
    "pwrite": ["SHORT", "EINTR"],
    "pread": ["SHORT", "EINTR"],
    "copy_file_range": ["SHORT", "EINTR", "EXDEV", "EOPNOTSUPP"],
    "fallocate": ["EOPNOTSUPP"],
}
NAMED = "tmpfile:1:EOPNOTSUPP"  # a file system on which every file has a name
TOGETHER = [  # and must the command succeed?
    ([NAMED, "renameat2:1:EINVAL"], True),
    ([NAMED, "renameat2:1:EINVAL", "unlink:1:EACCES"], None),
    ([NAMED, "renameat2:1:EINVAL", "link:1:EACCES"], False),
    ([NAMED, "renameat2:1:EACCES"], False),
    ([NAMED, "write:1:ENOSPC"], False),
    ([NAMED, "fsync:1:EIO"], False),
    ([NAMED, "rename:1:EACCES"], False),
    (["fsync:1:EIO", "ftruncate:1:EIO"], None),
    (["fsync:2:EIO", "ftruncate:1:EIO"], None),
    (["pwrite:1:EIO", "ftruncate:1:EIO"], None),
    (["pwrite:2:ENOSPC", "ftruncate:1:EIO"], None),
    (["pwrite:3:EIO", "ftruncate:1:EIO"], None),
    (["pwrite:3:SHORT", "pwrite:4:EIO", "ftruncate:1:EIO"], None),
]
MOST = 16  # of the calls of one kind, more are sampled
LAST = 12  # of the allocations: during these, files are committed


class Job:
    """A command, the files that are there before it, and what it makes of them."""

    def __init__(self, name, arguments, before, poise, scratch):
        self.name, self.poise = name, poise
        self.directory = scratch / name
        self.arguments = [str(argument).replace("@", str(self.directory)) for argument in arguments]
        self.before = before
        self.reset()
        self.old_description = self.describe()
        subprocess.run([poise, *self.arguments], check=True, capture_output=True)
        self.after = self.state()
        self.new_description = self.describe()
        assert self.after != before, name

    def reset(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        for name, content in self.before.items():
            (self.directory / name).parent.mkdir(exist_ok=True)
            (self.directory / name).write_bytes(content)

    def state(self):
        """Files by their names, those in a directory behind its; an empty directory has the name that ends in a
        slash."""
        files = {}
        for path in self.directory.rglob("*"):
            name = str(path.relative_to(self.directory))
            if path.is_file():
                files[name] = path.read_bytes()
            elif not any(path.iterdir()):
                files[name + "/"] = b""
        return files

    def describe(self):
        """Reads a file while it is edited in place."""
        path = self.directory / "m.zt"
        inspect = subprocess.run([self.poise, "inspect", path, "--tensors"], capture_output=True).stdout
        return [line for line in inspect.splitlines() if b"  size " not in line], subprocess.run(
            [self.poise, "verify", path], capture_output=True
        ).returncode

    def is_whole(self, state):
        """The target is the old or the new one. New shards come first; without the file that names them they say
        nothing. A file that grows in place may have its old end once more, behind a gap."""
        new_shards = {name: content for name, content in self.after.items() if re.search(r"-\d{5}\.zt$", name)}
        if state in (self.before, self.after):
            return True
        if state.keys() == self.before.keys() == {"m.zt"}:
            return self.describe() in (self.old_description, self.new_description)
        return state.items() <= {**self.before, **new_shards}.items()

    def run(self, environment):
        self.reset()
        return subprocess.run([self.poise, *self.arguments], env=environment, capture_output=True, timeout=60)


class Report:
    def __init__(self):
        self.runs, self.faults = 0, []

    def check(self, job, what, done, must_succeed):
        self.runs += 1
        state, message = job.state(), done.stderr.decode()
        if done.returncode == 0:
            right = state == job.after
        else:
            said = done.returncode == 1 and message.startswith("poise: ") and "bug in Poise" not in message
            # Memory can run out while the summary is printed, when the file is there.
            right = (
                said and not must_succeed and (state == job.before or what.startswith("malloc") and state == job.after)
            )
        if not right:
            differing = sorted(
                name
                for name in state.keys() | job.after.keys()
                if state.get(name) not in (job.before.get(name), job.after.get(name))
            )
            self.faults.append(
                f"{job.name}: {what}: exit {done.returncode}, {sorted(state)}, neither old nor new: {differing}; "
                f"{message.strip()[:300]}"
            )


def count_calls(job, injector, scratch):
    log = scratch / "calls"
    job.run({"LD_PRELOAD": injector, "POISE_FAULT_LOG": str(log)})
    return {name: int(count) for name, count in (line.split() for line in log.read_text().splitlines())}


def positions(call, count, seed):
    """Those at which a call fails. Of thousands of allocations the last ones, and some before them. Each position has a
    rank that depends on nothing but the seed, and those of the least ranks are taken: where a machine's count is
    another one, nearly all are the same."""
    if count <= MOST:
        return range(1, count + 1)
    if call != "malloc":
        return sorted({1 + i * (count - 1) // (MOST - 1) for i in range(MOST)})
    before = sorted(
        range(1, count - LAST + 1), key=lambda position: hashlib.sha256(f"{seed} {position}".encode()).digest()
    )
    return sorted(before[: MOST - LAST]) + list(range(count - LAST + 1, count + 1))


def inject(job, injector, scratch, report, seed):
    for call, count in count_calls(job, injector, scratch).items():
        for table, must_succeed in ((FATAL, False), (HARMLESS, True)):
            for how in table.get(call, []):
                for position in positions(call, count, seed):
                    fault = f"{call}:{position}:{how}"
                    report.check(job, fault, job.run({"LD_PRELOAD": injector, "POISE_FAULT": fault}), must_succeed)


def inject_together(job, injector, report):
    """Pairs of faults, where one leads to the other. A change that cannot be undone (ftruncate() or unlink() fails,
    too) leaves a whole file."""
    for faults, must_succeed in TOGETHER:
        fault = ",".join(faults)
        done = job.run({"LD_PRELOAD": injector, "POISE_FAULT": fault})
        if must_succeed is not None:
            report.check(job, fault, done, must_succeed)
            continue
        report.runs += 1
        whole = {
            name: content for name, content in job.state().items() if not (name.endswith(".tmp") and "unlink" in fault)
        }
        right = job.is_whole(whole)
        if whole.keys() == {"m.zt"}:
            right = job.describe() == (job.new_description if done.returncode == 0 else job.old_description)
        if done.returncode not in (0, 1) or not right:
            report.faults.append(f"{job.name}: {fault}: exit {done.returncode}, {sorted(job.state())}")


def is_whole_but_for_the_finished(job):
    """Under its hidden name a finished file may stay, complete, when a process is killed just before it is renamed; so
    may files of a directory, those of the new one or, when the two have changed places, of the old one."""
    state = job.state()
    finished = {
        name: state.pop(name)
        for name in list(state)
        if name.startswith(".") and name.split("/")[0].endswith(".poise-new")
    }
    for name in (
        ".m.gguf.poise-undo",
        ".m.safetensors.poise-undo",
    ):  # the old bytes and the new ones of an edit in place
        state.pop(name, None)
    shown = {
        name[1:].replace(".poise-new", "", 1): content for name, content in finished.items() if not name.endswith("/")
    }
    return job.is_whole(state) and all(
        content in (job.after.get(name), job.before.get(name)) for name, content in shown.items()
    )


def kill(job, kills, report):
    begin = time.monotonic()
    job.run({})
    duration = time.monotonic() - begin
    for _ in range(kills):
        job.reset()
        process = subprocess.Popen([job.poise, *job.arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 1.2 * duration))
        process.send_signal(signal.SIGKILL)
        process.wait()
        report.runs += 1
        left = sorted(job.state())
        if not is_whole_but_for_the_finished(job):
            report.faults.append(f"{job.name}: killed: {left}")
        elif left != sorted(job.before) and left != sorted(job.after):  # the next save leaves nothing of that
            subprocess.run([job.poise, *job.arguments], capture_output=True, timeout=60)
            if any(name.split("/")[0].endswith((".poise-new", ".poise-undo")) for name in job.state()):
                report.faults.append(f"{job.name}: killed and done again: {sorted(job.state())}")


def shrink(poise, scratch, report):
    """A file of 2 GB of zeros is cut off while it is hashed, which takes seconds."""
    path = scratch / "large.safetensors"
    header = json.dumps({"t": {"dtype": "F32", "shape": [1 << 29], "data_offsets": [0, 1 << 31]}}).encode()
    header += b" " * (-len(header) % 8)
    for io, message in (
        ("map", b"a file changed while it was read"),
        ("read", b"the file ends here, but it was longer"),
    ):
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        os.truncate(path, 8 + len(header) + (1 << 31))
        process = subprocess.Popen([poise, "hash", path, "--io", io], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and not any(path.name in os.readlink(link) for link in descriptors(process.pid)):
            time.sleep(0.001)
        time.sleep(0.2)
        os.truncate(path, 1 << 20)
        said = process.communicate(timeout=60)[1]
        report.runs += 1
        if process.returncode != 1 or message not in said:
            report.faults.append(f"truncated, --io {io}: exit {process.returncode}, {said.decode()}")
    path.unlink()


def refuse_threads(poise, injector, model, scratch, report):
    """A thread that the system refuses is not an error of standard output, where the answer of a chat goes."""
    template = scratch / "template.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    command = [poise, "chat", model, "--template", template, "-n", "3"]

    def chat(environment):
        return subprocess.run(command, env=environment, input=b"Once\n", capture_output=True, timeout=60)

    log = scratch / "calls"
    assert chat({"LD_PRELOAD": injector, "POISE_FAULT_LOG": str(log)}).returncode == 0
    counts = dict(line.split() for line in log.read_text().splitlines())
    refused = 0
    for position in range(1, int(counts["pthread_create"]) + 1):
        done = chat({"LD_PRELOAD": injector, "POISE_FAULT": f"pthread_create:{position}:EAGAIN"})
        report.runs += 1
        message = done.stderr.decode()
        refused += done.returncode == 1
        if done.returncode not in (0, 1) or not message.startswith("poise: ") or "standard output" in message:
            report.faults.append(f"chat: thread {position}: exit {done.returncode}: {message.strip()[:300]}")
    if refused == 0:
        report.faults.append("chat: no thread was refused")


def descriptors(pid):
    return list(pathlib.Path(f"/proc/{pid}/fd").iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("poise")
    parser.add_argument("injector")
    parser.add_argument("examples", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1, help="which allocations before the last ones fail")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model = options.examples / "nano-mistral"

        def made(name, *arguments):
            subprocess.run([options.poise, *map(str, arguments), "-o", scratch / name], check=True, capture_output=True)
            return (scratch / name).read_bytes()

        small = made("small.safetensors", "convert", model / "model.safetensors", "--only", "model.norm.weight")
        noted = made("noted.zt", "convert", scratch / "small.safetensors")
        subprocess.run(
            [options.poise, "edit", scratch / "noted.zt", "--set", "note=old"], check=True, capture_output=True
        )
        noted = made("noted.safetensors", "convert", scratch / "noted.zt")
        edited = {
            "zt2": made("small.zt", "convert", scratch / "small.safetensors"),
            "zt1": made("small1.zt", "convert", scratch / "small.safetensors", "--to", "zt1"),
        }
        convert = ["convert", model, "-o"]
        named = made("small.gguf", "convert", model, "--to", "gguf", "--only", "model.norm.weight")
        old_directory = {"out/config.json": b"old", "out/model-00001-of-00001.safetensors": b"older"}
        jobs = [
            Job("new", [*convert, "@/out.alt"], {}, options.poise, scratch),
            Job("replaced", [*convert, "@/out.alt", "--force"], {"out.alt": b"old"}, options.poise, scratch),
            Job("read", [*convert, "@/out.alt", "--io", "read", "--dtype", "f32"], {}, options.poise, scratch),
            Job("copied", [*convert, "@/out.safetensors"], {}, options.poise, scratch),
            Job("shards", [*convert, "@/out.zt", "--shard-size", "1M"], {}, options.poise, scratch),
            Job("directory", [*convert, "@/out/", "--shard-size", "1M"], {}, options.poise, scratch),
            Job("replaced-directory", [*convert, "@/out/", "--force"], old_directory, options.poise, scratch),
            Job("compressed", [*convert, "@/out.zt", "--to", "zt1", "--compress", "zstd"], {}, options.poise, scratch),
            Job("edit-2", ["edit", "@/m.zt", "--set", "a=b"], {"m.zt": edited["zt2"]}, options.poise, scratch),
            Job("edit-1", ["edit", "@/m.zt", "--set", "a=b"], {"m.zt": edited["zt1"]}, options.poise, scratch),
            Job(
                "edit-in-place",
                ["edit", "@/m.gguf", "--set", "llama.rope.freq_base=12345"],
                {"m.gguf": named},
                options.poise,
                scratch,
            ),
            Job(
                "edit-gguf", ["edit", "@/m.gguf", "--set", "a=" + 100 * "b"], {"m.gguf": named}, options.poise, scratch
            ),
        ]
        jobs.append(
            Job(
                "edit-safetensors",
                ["edit", "@/m.safetensors", "--set", "note=new"],
                {"m.safetensors": noted},
                options.poise,
                scratch,
            )
        )
        assert small
        report = Report()
        for job in jobs:
            inject(job, options.injector, scratch, report, options.seed)
            inject_together(job, options.injector, report)
            kill(job, options.kills, report)
        shrink(options.poise, scratch, report)
        refuse_threads(options.poise, options.injector, model, scratch, report)
        print("\n".join(report.faults[:50]))
        print(f"{report.runs} runs, {len(report.faults)} faults")
        raise SystemExit(bool(report.faults))


main()
