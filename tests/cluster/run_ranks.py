"""Runs poise-mpi under mpirun and compares it with poise.

    run_ranks.py POISE POISE_MPI MPIRUN EXAMPLES RANKS|errors|ends

RANKS: texts, scores, vectors and conversions of that many ranks. errors: what one rank refuses ends all with its
message. ends: a rank that is killed, in chat, in a long run and in a conversion, and Ctrl-C, end the job. Each rank has
one thread. Exits with 77 (skipped) without Open MPI.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BOUND = 1e-5  # of the largest logit, of float32 models
# Models with random weights: heads that ranks do not divide, norms over all heads, experts, sinks, one matrix of q, k
# and v.
FAMILIES = {2: ("olmo2", "gpt2-f32"), 3: ("mixtral", "gemma2"), 4: ("olmo2", "gpt_oss"), 1: ("phi3",)}
SECONDS = 100  # for one command, on a busy machine


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


class Runner:
    def __init__(self, poise, poise_mpi, mpirun, examples):
        self.poise = poise
        self.poise_mpi = poise_mpi
        # One machine needs no remote shell, but Open MPI refuses to start where there is none.
        shell = [] if shutil.which("ssh") else ["--mca", "plm_rsh_agent", "true"]
        self.mpirun = [mpirun, "--allow-run-as-root", "--oversubscribe", "--quiet", *shell]
        self.model = str(pathlib.Path(examples) / "nano-mistral")
        self.text = str(pathlib.Path(examples) / "training" / "heldout.txt")
        self.failures = 0

    def command(self, ranks, arguments):
        return [*self.mpirun, "-n", str(ranks), self.poise_mpi, *arguments]

    def run(self, command, text=""):
        return subprocess.run(command, capture_output=True, text=True, input=text, timeout=SECONDS)

    def expect(self, is_right, what, detail=""):
        self.failures += not is_right
        print(f"{'ok' if is_right else 'FAILED'}: {what}{'' if is_right else ': ' + str(detail)}", flush=True)

    def expect_same(self, ranks, arguments, text=""):
        """Expects the output of one process."""
        arguments = [*arguments, "--threads", "1"]
        one = self.run([self.poise, *arguments], text)
        many = self.run(self.command(ranks, arguments), text)
        self.expect(
            (one.returncode, one.stdout) == (many.returncode, many.stdout),
            f"{ranks} ranks: {' '.join(arguments)}",
            f"{one} and {many}",
        )

    def expect_close(self, ranks, arguments, read):
        """Expects the numbers of one process, up to the order of sums."""
        arguments = [*arguments, "--threads", "1", "--exact"]
        one = read(self.run([self.poise, *arguments]).stdout)
        ran = self.run(self.command(ranks, arguments))
        many = read(ran.stdout) if ran.returncode == 0 else []
        error = float("inf")
        if len(one) == len(many):
            error = max(abs(a - b) for a, b in zip(one, many)) / max(map(abs, one))
        self.expect(error < BOUND, f"{ranks} ranks: {' '.join(arguments)}: {error:.1e}", ran.stderr)

    def compare(self, ranks, directory):
        long = ",".join(str(3 + i * 37 % 900) for i in range(300))  # ranks add up more numbers in slices
        prompt = ["-p", "Once upon a time", "-n", "40"]
        self.expect_same(ranks, ["run", self.model, *prompt])
        self.expect_same(ranks, ["run", self.model, *prompt, "--split", "layers"])
        self.expect_same(ranks, ["run", self.model, "-n", "20", "--draft", "lookup"], "The little fox\n")
        self.expect_close(ranks, ["run", self.model, "--tokens", long, "--logits"], lambda t: json.loads(t)["logits"])
        self.expect_close(ranks, ["embed", self.model, "A cat"], lambda t: json.loads(t)["embedding"])
        gguf = str(directory / "model.gguf")
        self.run([self.poise, "convert", self.model, "-o", gguf, "--quantize", "q8_0"])
        self.expect_same(ranks, ["run", gguf, *prompt, "--split", "layers", "--cache", "q8"])
        self.expect_same(ranks, ["run", gguf, *prompt])
        chat = ["chat", self.model, "--template", "chatml", "-n", "8", "--quiet"]
        self.expect_same(ranks, chat, "Hello\n/undo\nTell me more\n")
        zt = str(directory / "model.zt")
        self.run([self.poise, "convert", self.model, "-o", zt, "--quantize", "group4"])
        damaged = pathlib.Path(str(directory / "damaged.zt"))
        content = bytearray(pathlib.Path(zt).read_bytes())
        for place in (len(content) // 3, len(content) // 2):
            content[place] ^= 0x55
        damaged.write_bytes(content)
        cut = pathlib.Path(str(directory / "cut.gguf"))
        cut.write_bytes(pathlib.Path(gguf).read_bytes()[:5000])
        for arguments in (
            ["hash", self.model],
            ["stats", gguf, "--json"],
            ["stats", zt],
            ["verify", zt, "--json"],
            ["verify", str(damaged)],
            ["verify", str(cut)],
            ["verify", self.model],
            ["diff", self.model, gguf, "--json"],
            ["diff", self.model, zt, "--only", "*.self_attn.*", "--tolerance", "0.001"],
            ["diff", zt, zt],
            ["diff", gguf, str(damaged)],
        ):
            one = self.run([self.poise, *arguments])
            many = self.run(self.command(ranks, arguments))
            same = (one.stdout, one.returncode) == (many.stdout, many.returncode)
            self.expect(same, f"{ranks} ranks: {' '.join(arguments)}", many)
        self.convert(ranks, directory, zt, gguf)
        self.answer_prompts(ranks, directory)
        self.compare_families(ranks, directory)

    def convert(self, ranks, directory, zt, gguf):
        """Expects the files and the report of one process. The paths end alike, and names of shards derive from it."""
        cases = (
            (self.model, "a.zt", ["--dtype", "f16"]),
            (self.model, "b.zt", ["--digest", "sha256", "--quantize", "qint8"]),
            (self.model, "c.zt", ["--shard-size", "300K"]),
            (self.model, "d.zt", ["--compress", "zstd:3"]),
            (self.model, "e.safetensors", ["--dtype", "bf16"]),
            (self.model, "f/", ["--to", "huggingface", "--shard-size", "300K", "--dtype", "f16"]),
            (self.model, "g.gguf", ["--quantize", "q4_k_m"]),
            (self.model, "j.gguf", ["--quantize", "auto", "--bpw", "5", "--text", self.text]),
            (gguf, "h.alt", []),
            (zt, "i.npz", []),
        )
        for source, name, options in cases:
            made = []
            for way in ("one", "many"):
                place = directory / f"{way}-converted"
                place.mkdir(exist_ok=True)
                arguments = ["convert", source, str(place / name), *options]
                ran = self.run([self.poise, *arguments] if way == "one" else self.command(ranks, arguments))
                files = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
                text = re.sub(r", [0-9.]+ s, .*/s\n", "\n", ran.stdout).replace(str(place), "")
                made.append((ran.returncode, text, files))
                shutil.rmtree(place)
            detail = [
                (code, text, {file: len(content) for file, content in files.items()}) for code, text, files in made
            ]
            is_right = made[0] == made[1] and made[0][0] == 0 and made[0][2]
            self.expect(is_right, f"{ranks} ranks: convert to {name} {' '.join(options)}", detail)

    def answer_prompts(self, ranks, directory):
        """Expects the file of one process. An interrupted run continues from its first answers."""
        lines = [
            json.dumps({"id": i, "prompt": f"Once upon a {animal}"}) + "\n"
            for i, animal in enumerate(("fox", "cat", "dog", "bird", "time", "day"))
        ]
        prompts, one, many = (directory / name for name in ("prompts.jsonl", "one.jsonl", "many.jsonl"))
        partial = directory / "many.jsonl.partial"
        run = ["run", self.model, "--prompts", str(prompts), "-n", "6", "--parallel", "2", "--threads", "1", "-o"]

        def answer():
            return self.run(self.command(ranks, [*run, str(many)]))

        prompts.write_text("".join(lines))
        self.run([self.poise, *run, str(one)])
        ran = answer()
        self.expect(many.exists() and many.read_bytes() == one.read_bytes(), f"{ranks} ranks: run --prompts -o", ran)
        many.unlink()
        prompts.write_text("".join(lines[:3]) + '{"no": 1}\n')
        ran = answer()
        is_right = ran.returncode == 1 and "line 4" in ran.stderr and partial.exists() and not many.exists()
        self.expect(is_right, f"{ranks} ranks: a wrong prompt leaves the answers before it", ran)
        prompts.write_text("".join(lines))
        ran = answer()
        is_right = "kept" in ran.stderr and many.exists() and many.read_bytes() == one.read_bytes()
        self.expect(is_right and not partial.exists(), f"{ranks} ranks: run --prompts -o continues", ran)
        one.unlink()
        many.unlink()

    def compare_families(self, ranks, directory):
        try:
            import numpy as np
        except ImportError:
            print("this Python has no NumPy: no random models")
            return
        sys.path.append(str(pathlib.Path(__file__).parent.parent / "runtime"))
        from random_directories import BASE, CASES, write_directory

        cases = {name: (dtype, changes) for name, dtype, _, changes in CASES}
        for number, name in enumerate(FAMILIES[ranks]):
            dtype, changes = cases[name]
            is_whole = "text_config" in changes or changes.get("model_type") == "gpt2"
            config = dict(changes) if is_whole else {**BASE, **changes}
            model = directory / name
            model.mkdir()
            write_directory(model, config, f"{self.model}/tokenizer.model", dtype, np.random.default_rng(number))
            tokens = ",".join(str(3 + i * 37 % 700) for i in range(30))
            arguments = ["run", str(model), "--tokens", tokens, "--logits", "--cache", "f32"]
            self.expect_close(ranks, arguments, lambda text: json.loads(text)["logits"])

    def expect_refusal(self, command, code, message, what):
        ran = self.run(command)
        count = ran.stderr.count(message)
        self.expect((ran.returncode, count, ran.stdout) == (code, 1, ""), what, ran)

    def refuse(self, directory):
        self.expect_refusal(
            self.command(3, ["run", "nowhere", "-p", "x"]), 1, "poise: nowhere: cannot open", "no rank has the file"
        )
        self.expect_refusal(
            self.command(2, ["run", self.model, "--nonsense"]), 2, 'run has no option "--nonsense"', "a wrong option"
        )
        self.expect_refusal(
            self.command(2, ["run", "-", "-p", "x"]), 2, "a model from standard input needs one process", "a stream"
        )
        delayed = ["env", "POISE_EXCHANGE_DELAY=1s", *self.command(2, ["run", self.model, "-p", "x"])]
        ran = self.run(delayed)
        self.expect("expected microseconds" in ran.stderr and ran.returncode == 1, "a delay without a number", ran)
        begin = time.monotonic()
        ran = self.run(["env", "POISE_EXCHANGE_DELAY=100000", *delayed[2:], "-n", "1"])
        seconds = time.monotonic() - begin
        layers = json.loads((pathlib.Path(self.model) / "config.json").read_text())["num_hidden_layers"]
        self.expect(ran.returncode == 0 and seconds > 0.2 * layers, f"slower exchanges: {seconds:.1f} s", ran)
        run = ["run", self.model, "-p", "x", "--threads", "1"]
        other = ["run", str(directory / "other"), *run[2:]]

        def apart(last):
            return [*self.command(2, run), ":", "-n", "1", self.poise_mpi, *last]

        self.expect_refusal(apart(other), 1, f"{other[1]}: cannot open", "one rank has no file")
        ran = self.run(apart(other))
        self.expect("poise: rank 2 on " in ran.stderr, "the rank is named", ran)
        shutil.copytree(self.model, other[1])
        config = pathlib.Path(other[1]) / "config.json"
        config.write_text(config.read_text().replace("1e-05", "1e-06"))
        self.expect_refusal(apart(other), 1, "rank 2 has another model than rank 0", "one rank has another file")
        there = directory / "there.zt"
        there.write_text("old")
        convert = ["convert", self.model, str(there)]
        self.expect_refusal(self.command(3, convert), 2, "the output exists already", "an output that exists")
        self.expect(there.read_text() == "old", "it stays")
        new = str(directory / "new.zt")
        apart_convert = [*self.command(2, ["convert", self.model, new]), ":", "-n", "1", self.poise_mpi, "convert"]
        self.expect_refusal(
            [*apart_convert, str(directory / "none"), new], 1, "none: cannot open", "convert: one rank has no file"
        )
        self.expect_refusal(
            [*apart_convert, other[1], new], 1, "rank 2 has another model than rank 0", "convert: another file"
        )
        self.expect_refusal(
            self.command(2, ["convert", self.model, "-", "--to", "zt"]), 2, "needs one process", "convert to a stream"
        )
        matrices = [str(directory / name) for name in ("a.gguf", "b.gguf")]
        text = directory / "text.txt"
        text.write_text("Once upon a time. " * 100)
        self.run([self.poise, "imatrix", self.model, str(text), "--chunk-size", "64", "-o", matrices[0]])
        sums = bytearray(pathlib.Path(matrices[0]).read_bytes())
        sums[-1] ^= 1
        pathlib.Path(matrices[1]).write_bytes(sums)
        quantize = ["--quantize", "q4_0", "--imatrix"]
        self.expect_refusal(
            [*apart_convert[:-5], *quantize, matrices[0], *apart_convert[-5:], self.model, new, *quantize, matrices[1]],
            1,
            "rank 2 has another file than rank 0",
            "convert: another importance matrix",
        )
        left = [path.name for path in directory.iterdir() if "new" in path.name]
        self.expect(not left, "a refused conversion leaves no file", left)
        one = self.run([self.poise, "inspect", self.model])
        many = self.run(self.command(3, ["inspect", self.model]))
        self.expect(one.stdout == many.stdout, "rank 0 runs other commands alone", many)

    def end(self):
        """Kills a rank, and interrupts mpirun, at random moments."""
        for way in ("kill", "kill", "interrupt"):
            started = subprocess.Popen(
                self.command(3, ["chat", self.model, "--template", "chatml", "--threads", "1"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            ranks = self.wait_for_children(started.pid, "model.safetensors")
            time.sleep(random.random())
            if way == "kill":
                os.kill(random.choice(ranks), signal.SIGKILL)
            else:
                started.send_signal(signal.SIGINT)
            try:
                code = started.wait(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                code = 0
                started.kill()
            left = self.wait_for_ends(ranks)
            self.expect(code != 0 and not left, f"{way} ends all", f"code {code}, ranks left {left}")

    def end_run(self, directory):
        """Kills a rank of a long run, whose other ranks wait for its sums, at random moments."""
        model = directory / "long-context"
        shutil.copytree(self.model, model)
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 30000}))
        run = ["run", str(model), "-p", "Once", "-n", "-1", "--context", "30000", "--ignore-eos", "--threads", "1"]
        command = [word for word in self.command(3, run) if word != "--quiet"]  # which hides mpirun's message
        for _ in range(2):
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            ranks = self.wait_for_children(started.pid, "model.safetensors")
            time.sleep(random.random())
            os.kill(random.choice(ranks), signal.SIGKILL)
            begin = time.monotonic()
            try:
                message = started.communicate(timeout=SECONDS)[1]
            except subprocess.TimeoutExpired:
                started.kill()
                message = b""
            seconds = time.monotonic() - begin
            left = self.wait_for_ends(ranks)
            is_right = started.returncode != 0 and b"signal 9" in message and not left
            detail = f"code {started.returncode}, ranks left {left}: {message}"
            self.expect(is_right, f"a killed rank ends a run with a message after {seconds:.1f} s", detail)

    def end_conversion(self, directory):
        """Kills a rank in the middle of a conversion, at random moments. Expects all of the output, or no file."""
        try:
            import numpy as np
        except ImportError:
            print("this Python has no NumPy: no large model")
            return
        large = str(directory / "large.npz")
        noise = np.random.default_rng(7)
        np.savez(large, **{f"w{i}": noise.standard_normal((1024, 1024), np.float32) for i in range(24)})
        place = directory / "made"
        place.mkdir()
        output = place / "large.zt"
        convert = ["convert", large, str(output), "--quantize", "q4_k"]
        self.run([self.poise, *convert])
        whole = output.read_bytes()
        output.unlink()
        command = [word for word in self.command(3, convert) if word != "--quiet"]  # which hides mpirun's message
        for moment in (0.0, 0.1, 0.3, 0.7, 1.5):
            delay = moment * random.uniform(0.5, 1.5)
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            ranks = self.wait_for_children(started.pid, large)
            time.sleep(delay)
            is_killed = bool(ranks)
            try:
                os.kill(random.choice(ranks), signal.SIGKILL)
            except (ProcessLookupError, IndexError):
                is_killed = False  # the conversion was faster
            try:
                message = started.communicate(timeout=SECONDS)[1].decode()
            except subprocess.TimeoutExpired:
                started.kill()
                message = ""
            left = list(place.iterdir())
            is_right = not left or (left == [output] and output.read_bytes() == whole)
            if is_killed and not left:
                is_right = started.returncode != 0 and "signal 9" in message
            if not is_killed:
                is_right = is_right and bool(left) and started.returncode == 0
            what = f"killed after {delay:.1f} s" if is_killed else "done"
            detail = (started.returncode, message, left)
            self.expect(is_right, f"a conversion {what}: {'the whole' if left else 'no'} output", detail)
            output.unlink(missing_ok=True)
        ran = self.run(self.command(3, convert))
        is_right = ran.returncode == 0 and list(place.iterdir()) == [output] and output.read_bytes() == whole
        self.expect(is_right, "the next conversion works", ran)

    @staticmethod
    def is_running(process):
        try:
            state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    @staticmethod
    def wait_for_ends(ranks):
        """Returns the ranks that still run after 10 seconds. mpirun may end before the ranks that it has killed."""
        end = time.monotonic() + 10
        while time.monotonic() < end and any(map(Runner.is_running, ranks)):
            time.sleep(0.02)
        return [rank for rank in ranks if Runner.is_running(rank)]

    def wait_for_children(self, parent, mapped=""):
        """Returns the ranks once all have started and have mapped a file of that name; an empty list if they end first.

        mpirun reports no signal of a rank that is killed before it has joined the others. Ranks that read the model have.
        """
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and Runner.is_running(parent):
            try:
                children = [
                    int(pid)
                    for pid in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("poise-mpi")
                    and mapped in pathlib.Path(f"/proc/{pid}/maps").read_text()
                ]
            except OSError:  # one has ended meanwhile
                continue
            if len(children) == 3:
                return children
            time.sleep(0.02)
        return []


def main():
    poise, poise_mpi, mpirun, examples, what = sys.argv[1:6]
    if not poise_mpi or not os.access(mpirun, os.X_OK):
        skip("poise-mpi was not built, or there is no mpirun")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        skip(f"{mpirun} is not Open MPI's")
    runner = Runner(poise, poise_mpi, mpirun, examples)
    with tempfile.TemporaryDirectory() as directory:
        if what == "errors":
            runner.refuse(pathlib.Path(directory))
        elif what == "ends":
            runner.end()
            runner.end_run(pathlib.Path(directory))
            runner.end_conversion(pathlib.Path(directory))
        else:
            runner.compare(int(what), pathlib.Path(directory))
    sys.exit(runner.failures > 0)


if __name__ == "__main__":
    main()
