#!/usr/bin/env python3
"""Uses pages of `poise report` in a real browser: headless Chromium, without a network. Skipped where it is absent.

page_in_browser.py POISE ROOT [FOLDER]      FOLDER: gets pictures of the pages
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

from browser import Browser, find_chromium

SKIPPED = 77
POISE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
PICTURES = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
EXAMPLE = ROOT / "examples" / "nano-mistral"
WIDTHS = {360: 740, 1600: 900}

HOSTILE = ["<script>document.title = 'run'</script>", '"><img src=x onerror="document.title=1">', "</script><svg onload=alert(1)>",
           "<a href='javascript:alert(1)'>a</a>", "line\nbreak\u2028end", "{{constructor}} ${alert(1)} &lt;b&gt;", "\u202eevil.weight\u2067"]  # fmt: skip
# Characters that change the direction of writing are shown as escapes.
SHOWN = [name.replace("\u202e", "\\u202e").replace("\u2067", "\\u2067") for name in HOSTILE]
LONG_TOKEN = "z" * 10000


def expect(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def poise(*arguments):
    subprocess.run([POISE, *map(str, arguments), "--quiet"], check=True)


def write_hostile_directory(path):
    """A directory whose tensors, tokens, chat template and configuration have markup in their texts."""
    path.mkdir()
    header, data = {"__metadata__": {HOSTILE[0]: HOSTILE[1]}}, b""
    for i, name in enumerate(HOSTILE):
        header[name] = {"dtype": "F32", "shape": [4, 8], "data_offsets": [128 * i, 128 * (i + 1)]}
        numbers = [math.nan if i in (2, 6) and j == 5 else 0.5 * j - i for j in range(32)]
        data += struct.pack("<32f", *numbers)
    text = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (path / "config.json").write_text(
        json.dumps({"model_type": HOSTILE[0], "architectures": [HOSTILE[1]], HOSTILE[2]: HOSTILE[3]})
    )
    vocabulary = {text: i for i, text in enumerate([*HOSTILE, "a", "b", LONG_TOKEN])}
    tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                 "decoder": None, "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}  # fmt: skip
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    template = HOSTILE[0] + "{% for m in messages %}{{ m['content'] }}" + HOSTILE[1] + "{% endfor %}"
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


class Check:
    """One page at one width."""

    def __init__(self, browser, url, width, dark=False):
        self.page, self.url, self.width = browser.open_page(), url, width
        self.page.show(url, width, WIDTHS[width], dark)

    def end(self):
        """Checks each page at the end: no error, no request, no scrolling sideways."""
        expect(self.page.errors, [], "errors")
        expect(self.page.requests, [self.url], "requests")
        wide = self.page.run("document.documentElement.scrollWidth")
        expect(wide <= self.width, True, f"the page's width, {wide}, at {self.width}")

    def take_picture(self, name):
        if PICTURES is not None:
            self.page.save_picture(PICTURES / f"{name}-{self.width}.png")


def check_structure(check):
    """Checks that screen readers and keyboards find one heading of the page, and names of all controls and pictures."""
    page = check.page
    expect(page.run("document.querySelectorAll('h1').length"), 1, "headings of the page")
    nameless = page.run(
        """[...document.querySelectorAll('button, input, select, canvas[role], svg[role], [tabindex="0"]')].filter((e) =>
        !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 99))"""
    )
    expect(nameless, [], "controls without a name")
    expect(
        page.run(
            "[...document.querySelectorAll('[id]')].length - new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size"
        ),
        0,
        "repeated ids",
    )
    unlinked = (
        "[...document.querySelectorAll('#sections a')].filter((a) => !document.getElementById(a.hash.slice(1))).length"
    )
    expect(page.run(unlinked), 0, "links to sections that are not there")
    # Text that is large enough to read has a contrast of 4.5 with what is behind it, on the first screen.
    expect(page.run(CONTRAST), [], "texts with too little contrast")


CONTRAST = """(() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const p = parse(c); if (c.startsWith('rgb') && (p.length < 4 || p[3] === 1)) return p; } return [255, 255, 255]; };
  return [...document.querySelectorAll('.hero *, .treemap button')].filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
})()"""


def check_treemap(check):
    page = check.page
    crumbs = "document.querySelectorAll('.crumbs li').length"
    expect(page.run(crumbs), 1, "levels of the treemap")
    page.click(".treemap button")
    page.wait(f"{crumbs} === 2")
    page.run("document.querySelector('.treemap button').focus()")
    page.press("Enter")
    page.wait(f"{crumbs} === 3")
    page.press("Escape")
    page.wait(f"{crumbs} === 2")
    page.press("Escape")
    page.wait(f"{crumbs} === 1")
    # Areas are in proportion to bytes.
    areas = page.run(
        "[...document.querySelectorAll('.treemap button')].map((b) => [b.offsetWidth * b.offsetHeight, b.getAttribute('aria-label')])"
    )
    whole = page.run("document.querySelector('.treemap').clientWidth * document.querySelector('.treemap').clientHeight")
    for area, text in areas:
        share = float(text.split(", ")[2].replace("<", "").split("\u00a0")[0]) / 100
        if abs(area / whole - share) > 0.03:
            raise AssertionError(f"{text}: has {area / whole:.3f} of the area")
    page.run("[...document.querySelectorAll('.segments button')].find((b) => b.textContent === 'By layer').click()")
    page.wait(
        "[...document.querySelectorAll('.treemap button')].some((b) => b.getAttribute('aria-label').startsWith('Layer 3,'))"
    )
    page.run("[...document.querySelectorAll('.segments button')].find((b) => b.textContent === 'By component').click()")


def read_column(page, section, column):
    return page.run(
        f"[...document.querySelectorAll('#{section} tbody tr')].map((r) => r.children[{column}]?.textContent ?? '')"
    )


def check_tensors(check):
    page = check.page
    page.type("#tensors input[type=search]", "layers.1. mlp")
    page.wait("document.querySelectorAll('#tensors tbody tr').length === 3")
    names = read_column(page, "tensors", 0)
    expect(all("layers.1.mlp" in name for name in names), True, f"found {names}")
    page.type("#tensors input[type=search]", "")
    page.run(
        "document.querySelector('#tensors input[type=search]').value = ''; document.querySelector('#tensors input[type=search]').dispatchEvent(new Event('input'))"
    )
    page.wait("document.querySelectorAll('#tensors tbody tr').length === 25")
    head = "[...document.querySelectorAll('#tensors th')].find((h) => h.textContent === 'Bytes')"
    page.run(head + ".querySelector('button').click()")
    expect(page.run(head + ".getAttribute('aria-sort')"), "descending", "order")
    first = read_column(page, "tensors", 0)[0]
    expect(first in ("model.embed_tokens.weight", "lm_head.weight"), True, f"the largest tensor, {first}")
    page.run(head + ".querySelector('button').click()")
    expect(page.run(head + ".getAttribute('aria-sort')"), "ascending", "order")
    expect(read_column(page, "tensors", 0)[0].endswith("norm.weight"), True, "the smallest tensor")
    page.run("document.querySelector('#tensors .more').click()")
    page.wait("document.querySelectorAll('#tensors tbody tr').length === 39")


def check_dialog(check):
    page = check.page
    page.click("#matrices .row button")
    page.wait("document.getElementById('tensor').open")
    title = "document.getElementById('tensor-title').textContent"
    before = page.run(title)
    check.take_picture("tensor")
    expect(
        page.run("document.querySelector('#tensor').textContent.includes('SHA-256')"), True, "a digest in the dialog"
    )
    expect(page.run("document.querySelectorAll('#tensor rect').length > 10"), True, "a histogram in the dialog")
    colors = page.run(
        "(() => { const c = document.querySelector('#tensor canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return new Set(Array.from({length: d.length / 4}, (_, i) => d.slice(4 * i, 4 * i + 3).join())).size; })()"
    )
    expect(colors > 3, True, "colours of the map")
    page.run("document.querySelector('#tensor [aria-label=\"Next tensor\"]').click()")
    expect(page.run(title) != before, True, "another tensor")
    page.press("Escape")
    page.wait("!document.getElementById('tensor').open")


def check_vocabulary(check):
    page = check.page
    page.type("#vocabulary input[type=search]", "#259")
    page.wait("document.querySelectorAll('#vocabulary tbody tr').length === 1")
    expect(read_column(page, "vocabulary", 0), ["259"], "the token's id")
    page.type("#vocabulary input[type=search]", "the")
    page.wait("document.querySelectorAll('#vocabulary tbody tr').length > 1")
    expect(all("the" in text.lower() for text in read_column(page, "vocabulary", 1)), True, "found tokens")


def check_memory(check):
    page = check.page
    text = "document.querySelector('#memory output').textContent"
    before = page.run(text)
    page.run(
        "(() => { const s = document.querySelector('#memory input'); s.value = 100; s.dispatchEvent(new Event('input')); })()"
    )
    expect(page.run(text) != before and "512 tokens" in page.run(text), True, "memory for the whole context")


def check_curves(check):
    page = check.page
    page.run("document.querySelector('#layers svg').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    expect(
        page.run("document.querySelector('#layers .readout').textContent.startsWith('layer 1')"),
        True,
        "read-out of layer 1",
    )
    chips = page.run("document.querySelectorAll('#layers .curve').length")
    page.run("document.querySelector('#layers .chip[aria-pressed=true]').click()")
    expect(page.run("document.querySelectorAll('#layers .curve').length"), chips - 3, "curves without a role")


def check_comparison(check):
    page = check.page
    expect(page.run("document.querySelectorAll('#comparison .tile').length >= 4"), True, "tiles of the comparison")
    ratio = float(page.run("document.querySelector('#comparison .tile .big').textContent").split("\u00a0")[0])
    expect(40 < ratio < 50, True, f"signal to noise of q8_0, {ratio}")
    order = [float(text.split("\u00a0")[0]) for text in read_column(page, "comparison", 3) if "dB" in text]
    expect(order, sorted(order), "order of losses")


def write_float64(path, tensors):
    header, data = {}, b""
    for name, numbers in tensors.items():
        end = len(data) + 8 * len(numbers)
        header[name] = {"dtype": "F64", "shape": [len(numbers)], "data_offsets": [len(data), end]}
        data += struct.pack(f"<{len(numbers)}d", *numbers)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def check_ratios(browser, directory):
    """The ratio of models whose numbers are known: an original times 10 has an error of 9 times it, -19.1 dB."""
    numbers = [1.0, -2.0, 3.0, 0.5]
    cases = {
        "equal": ({"w": numbers}, "exact", "all numbers are the same"),
        "ten times": ({"w": [10 * x for x in numbers]}, "-19.1", "900"),
        "zeros": ({"w": [0.0] * 4}, "0.0", "100"),
        "not a number": ({"w": [math.nan, *numbers[1:]]}, "\u2013", "not finite"),
        "another name": ({"v": numbers}, "\u2013", "no tensor has the same name"),
        "another shape": ({"w": numbers[:2]}, "\u2013", "no tensor has the same name"),
        "one more": ({"w": numbers, "v": numbers}, "exact", "that were compared"),
    }
    write_float64(directory / "original.safetensors", {"w": numbers})
    for name, (tensors, ratio, reason) in cases.items():
        write_float64(directory / "model.safetensors", tensors)
        page_file = directory / "ratio.html"
        original = directory / "original.safetensors"
        poise("report", directory / "model.safetensors", "--against", original, "-o", page_file, "--force")
        check = Check(browser, page_file.as_uri(), 1600)
        tile = check.page.run("document.querySelector('#comparison .tile').textContent")
        expect(ratio in tile and reason in tile, True, f"ratio of {name}: {tile}")
        check.end()


def check_example(browser, url):
    for width in WIDTHS:
        for dark in (False, True):
            check = Check(browser, url, width, dark)
            check.take_picture("dark" if dark else "light")
            check_structure(check)
            check_treemap(check)
            check_tensors(check)
            check_dialog(check)
            check_vocabulary(check)
            check_memory(check)
            check_curves(check)
            check_comparison(check)
            check.end()


DIRECTIONS = "/[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/.test(document.documentElement.innerHTML.replace(/<script.*?<\\/script>/gs, ''))"


def check_hostile(browser, url):
    for width in WIDTHS:
        check = Check(browser, url, width)
        page = check.page
        check.take_picture("hostile")
        expect(page.run("document.title"), "hostile", "title")
        expect(page.run("document.querySelectorAll('script').length"), 5, "scripts")
        expect(
            page.run("document.querySelectorAll('img, iframe, object, embed, a:not([href^=\"#\"])').length"),
            0,
            "elements made of names",
        )
        expect(read_column(page, "tensors", 0), SHOWN, "names of tensors")
        expect(page.run(DIRECTIONS), False, "a character that changes the direction of writing")
        expect(SHOWN[6] in page.run("document.querySelector('#findings').textContent"), True, "a finding with the name")
        page.type("#vocabulary input[type=search]", "<img")
        expect(read_column(page, "vocabulary", 1)[0], HOSTILE[0], "token")
        page.wait(
            "document.querySelectorAll('#vocabulary tbody tr').length === 0 || document.querySelectorAll('#vocabulary tbody tr').length === 1"
        )
        page.type("#vocabulary input[type=search]", "zzz")
        page.wait("document.querySelector('#vocabulary tbody code').textContent.startsWith('zzz')")
        expect(read_column(page, "vocabulary", 2), ["10,000"], "length of a token whose text is cut")
        expect(HOSTILE[1] in page.run("document.querySelector('#chat pre').textContent"), True, "the template's text")
        expect(page.run("document.querySelector('.tile.warn, .tile.bad') !== null"), True, "a verdict about NaN")
        for _ in HOSTILE:
            page.run("showTensor(allTensors[2])")
            page.run("document.querySelector('#tensor [aria-label=\"Next tensor\"]').click()")
        check.end()


def check_print(browser, url):
    page = browser.open_page()
    # Letter paper with Chromium's margins has 740 pixels, A4 718. No table is wider than its frame, which shows all.
    for width in (740, 718):
        page.show(url, width, 1000, media="print")
        cut = page.run(
            """[...document.querySelectorAll('.scroll')].filter((frame) => frame.scrollWidth > frame.clientWidth + 1 ||
            getComputedStyle(frame).overflowX !== 'visible').map((frame) => frame.textContent.slice(0, 40))"""
        )
        expect(cut, [], f"tables that paper of {width} pixels cuts")
        shown = "[...document.querySelectorAll('#tensors th')].filter((head) => head.offsetWidth > 0).length"
        expect(page.run(shown) >= 10, True, "columns of the printed table")
    page.show(url, 1600, 900, dark=True)
    pages = page.print_pages()
    expect(pages.startswith(b"%PDF"), True, "a PDF file")
    if PICTURES is not None:
        (PICTURES / "print.pdf").write_bytes(pages)


def main():
    program = find_chromium()
    if program is None:
        print("skipped: chromium is not installed (scripts/install_dependencies.sh browser)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name, Browser(program) as browser:
        folder = pathlib.Path(name)
        poise("convert", EXAMPLE, "-o", folder / "q8.gguf", "--quantize", "q8_0")
        poise("report", folder / "q8.gguf", "--against", EXAMPLE, "-o", folder / "example.html")
        check_example(browser, (folder / "example.html").as_uri())
        check_print(browser, (folder / "example.html").as_uri())
        check_ratios(browser, folder)
        write_hostile_directory(folder / "hostile")
        poise("report", folder / "hostile", "-o", folder / "hostile.html")
        check_hostile(browser, (folder / "hostile.html").as_uri())
        check_print(browser, (folder / "hostile.html").as_uri())  # with a column for numbers that are not finite
        # Files that have little: each section that lacks its data is left out.
        numbers = struct.pack("<Q", 2) + b"{}"
        (folder / "empty.safetensors").write_bytes(numbers)
        poise("report", folder / "empty.safetensors", "-o", folder / "empty.html")
        for width in WIDTHS:
            Check(browser, (folder / "empty.html").as_uri(), width).end()
    return 0


sys.exit(main())
