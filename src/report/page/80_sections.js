// The sections about memory, chat template, findings and digests.

function addMemory() {
  const memory = model.memory;
  if (memory.reason || !memory.types.length) return;
  const section = addSection("memory", "Memory to run it", "Weights as they are stored, plus keys and values of the context, in the types that --cache takes. Working memory, up to a few hundred megabytes, comes on top.", "Memory");
  const contexts = [];
  for (let context = 1024; context < memory.context; context *= 2) contexts.push(context);
  contexts.push(memory.context);
  const shown = contexts.slice(-8);
  const total = (type, context) => memory.weights + countCacheBytes(type, context);
  const rows = shown.map((context) => make("tr", {}, make("th", {scope: "row", class: "number"}, formatCount(context)),
    memory.types.map((type) => make("td", {class: "number"}, formatBytes(total(type, context)),
      make("span", {class: "soft wide"}, ` (${formatBytes(countCacheBytes(type, context))} cache)`)))));
  const table = make("div", {class: "card scroll"}, make("table", {}, make("caption", {class: "hidden"}, "Memory by context and type of cache"),
    make("thead", {}, make("tr", {}, make("th", {scope: "col", class: "number"}, "Context"), memory.types.map((type) => make("th", {scope: "col", class: "number"}, "cache " + type.type)))),
    make("tbody", {}, rows)));
  const out = make("output", {"aria-live": "polite"});
  const slider = make("input", {type: "range", min: 0, max: 100, value: 60, "aria-label": "Context in tokens", style: {width: "100%"}, oninput: () => update()});
  const select = make("select", {"aria-label": "Type of cache", onchange: () => update()}, memory.types.map((type) =>
    make("option", {value: type.type, selected: type.type === "f16"}, "cache " + type.type)));
  const bar = make("div", {class: "bar", "aria-hidden": true});
  const update = () => {
    const least = Math.min(256, memory.context);
    const raw = least * (memory.context / least) ** (slider.value / 100);
    const context = slider.value === "100" ? memory.context : Math.max(1, Math.round(raw / 64) * 64);
    const cache = countCacheBytes(findCacheType(select.value), context);
    out.replaceChildren(make("b", {}, formatBytes(memory.weights + cache)), ` for ${formatCount(context)} tokens: weights ${formatBytes(memory.weights)}, cache ${formatBytes(cache)}`);
    slider.setAttribute("aria-valuetext", formatCount(context) + " tokens");
    bar.replaceChildren(make("div", {class: "fill c-attention", style: {"flex-grow": memory.weights}}), make("div", {class: "fill c-feed", style: {"flex-grow": cache}}));
  };
  update();
  section.append(make("div", {class: "card", style: {"margin-bottom": "1rem"}}, make("div", {class: "tools"}, select, out), bar, slider,
    make("ul", {class: "key"}, make("li", {}, make("i", {class: "fill c-attention"}), "weights"), make("li", {}, make("i", {class: "fill c-feed"}), "cache"))), table);
}

function addChat() {
  const chat = model.chat;
  if (!chat) return;
  const section = addSection("chat", "Chat template", "What the model reads of a conversation. Marked: texts of the messages; the rest is the template's.", "Chat");
  const grid = make("div", {class: "grid"});
  if (chat.text) {
    grid.append(make("div", {class: "card"}, make("h3", {}, "An example"), make("pre", {tabindex: 0, style: {"margin-top": ".6rem"}},
      chat.text.map((run) => run.message ? make("mark", {}, run.text) : run.text))));
  }
  if (chat.problem) grid.append(make("div", {class: "card"}, make("h3", {}, "The example fails"), make("p", {class: "note"}, chat.problem)));
  grid.append(make("div", {class: "card"}, make("h3", {}, "The template"), make("pre", {tabindex: 0, style: {"margin-top": ".6rem"}}, chat.template)));
  section.append(grid);
}

function addFindings() {
  const found = model.verify;
  const section = addSection("findings", "Findings", "What poise verify reports: structure, configuration against tensors, digests, and every value.", "Findings");
  if (!found.findings.length) {
    section.append(make("ul", {class: "findings"}, make("li", {class: "good"}, make("b", {}, "\u2713 None."),
      found.digests ? `${formatPlural(found.digests, "digest")} checked.` : "The file has no digests: changed bytes that are still valid would not show.")));
    return;
  }
  section.append(make("ul", {class: "findings"}, found.findings.map((finding) => make("li", {class: finding.severity === "error" ? "bad" : "warn"},
    make("b", {}, finding.severity === "error" ? "\u2717 Error" : "! Warning"), finding.message,
    make("span", {class: "soft small"}, (finding.file ? ` \u2014 ${finding.file}` : "") + (finding.offset === null ? "" : ` at 0x${finding.offset.toString(16)}`))))));
  if (found.more) section.append(make("p", {class: "note"}, `And ${formatCount(found.more)} more: poise verify lists all.`));
}

function addDigests(tensors) {
  const section = addSection("digests", "Digests", "SHA-256 of the decoded bytes, as poise hash prints them: the same numbers have the same digest in every format.", "Digests");
  const digests = model.digests;
  const entries = [];
  if (digests) {
    entries.push(["model", make("code", {class: "hash"}, digests.model)]);
    if (digests.content) entries.push(["content", make("code", {class: "hash"}, digests.content)]);
  }
  section.append(make("div", {class: "card"}, entries.length ? makePairs(entries) : make("p", {}, "A part could not be read, so the model has no digest.")));
  const rows = tensors.flatMap((tensor) => (tensor.sha256 || []).map(([role, digest]) => ({tensor, role, digest})));
  if (!rows.length) return;
  const list = make("details", {}, make("summary", {}, `The digests of ${formatPlural(rows.length, "part")}`));
  list.addEventListener("toggle", () => {
    if (list.querySelector("pre")) return;
    list.append(make("pre", {tabindex: 0}, rows.map(({tensor, role, digest}) => `${digest}  ${tensor.name}/${role}\n`).join("")));
  });
  section.append(list);
}
