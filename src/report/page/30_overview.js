// The first screen: what this is, how large, whether it is sound, and whether it runs in a given memory.

const GIB = 2 ** 30;
const USABLE = 0.9;  // of a machine's memory; the system has the rest

// Returns the bytes of keys and values for a context, by the formula of the runtime.
function countCacheBytes(type, context) {
  const memory = model.memory;
  let bytes = 0;
  for (const group of memory.groups) {
    const positions = group.positions === 0 ? context : Math.min(context, group.positions);
    bytes += group.layers * Math.ceil(positions / memory.block) * type.block_bytes;
  }
  return bytes;
}

// Returns the longest context whose cache fits, a multiple of 64 or all that the model allows; 0: none does.
function findContext(type, bytes) {
  let low = 0;
  let high = Math.ceil(model.memory.context / 64);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (countCacheBytes(type, middle * 64) <= bytes) low = middle;
    else high = middle - 1;
  }
  return Math.min(low * 64, model.memory.context);
}

function findCacheType(name) {
  return model.memory.types.find((type) => type.type === name) || model.memory.types[0];
}

function describeKind() {
  const words = [];
  const family = model.family;
  const sizes = model.sizes;
  if (model.adapter) words.push("An adapter (LoRA): it changes another model.");
  else if (family) words.push("A " + family.title + " model" + (sizes && sizes.layers ? "" : "."));
  else words.push("A file of tensors" + (sizes && sizes.layers ? "" : ": it states no family that Poise knows."));
  if (sizes && sizes.layers) {
    const heads = sizes.kv_heads && sizes.kv_heads !== sizes.heads
      ? `${sizes.heads} heads that share ${sizes.kv_heads} of keys and values` : formatPlural(sizes.heads, "head");
    words[words.length - 1] += ` with ${formatPlural(sizes.layers, "layer")} of width ${formatCount(sizes.hidden)}, ${heads}` +
      (sizes.context ? `, and a context of ${formatCount(sizes.context)} tokens.` : ".");
  }
  return words.join(" ");
}

function makeTile(term, big, unit, sub, tone) {
  return make("div", {class: "card tile " + (tone || "")}, make("dt", {}, term),
    make("dd", {class: "big"}, big, unit ? make("small", {}, "\u00a0" + unit) : null), make("dd", {class: "sub"}, sub));
}

function makeVerdictTile() {
  const found = model.verify;
  const digests = found.digests ? formatPlural(found.digests, "digest") + " checked"
    : found.has_digests ? "no digest could be checked" : "no digests, so changed bytes would not show";
  if (found.errors) {
    return makeTile("Is it sound?", "\u2717 " + formatPlural(found.errors, "error"), "",
      (found.warnings ? formatPlural(found.warnings, "warning") + "; " : "") + digests, "bad");
  }
  if (found.warnings) return makeTile("Is it sound?", "! " + formatPlural(found.warnings, "warning"), "", digests, "warn");
  return makeTile("Is it sound?", "\u2713 Sound", "", "every byte and number read; " + digests, "good");
}

function makeMemoryTile() {
  const memory = model.memory;
  if (memory.reason) {
    return makeTile("Memory to run it", formatBytes(memory.weights), "", "for the tensors alone; " + memory.reason);
  }
  const context = Math.min(4096, memory.context);
  const total = memory.weights + countCacheBytes(findCacheType("f16"), context);
  return makeTile("Memory to run it", formatBytes(total), "",
    `with ${formatCount(context)} tokens of context, cache f16`);
}

// Makes the list of machines: which memory holds the model, and how much text with it.
function makeMachineList() {
  const memory = model.memory;
  const all = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048];
  const type = findCacheType("f16");
  const context = Math.min(256, memory.context);
  const first = all.findIndex((size) => memory.weights + countCacheBytes(type, context) <= size * GIB * USABLE);
  const start = Math.max(0, (first < 0 ? all.length : first) - 1);
  return make("ul", {class: "fits", "aria-label": "Machines by memory"}, all.slice(start, start + 6).map((size) => {
    const left = size * GIB * USABLE - memory.weights;
    const fits = left > 0 ? findContext(type, left) : 0;
    const tone = fits === 0 ? "bad" : fits < memory.context ? "warn" : "good";
    const text = fits === 0 ? "too small" : fits < memory.context ? "part of the context" : "runs";
    return make("li", {class: tone}, make("b", {}, size + " GB"), make("span", {}, text), make("br", {}),
      fits === 0 ? "not even the weights and 256 tokens" : formatCount(fits) + " tokens");
  }));
}

// Makes a bar of the bytes by component, with its key.
function makeBar(tensors) {
  const listed = sumBy(tensors, (tensor) => tensor.bytes);
  const total = Math.max(model.bytes, listed);
  const groups = groupBy(tensors, (tensor) => tensor.component);
  const bytesOf = (id) => sumBy(groups.get(id) || [], (tensor) => tensor.bytes) + (id === "other" ? total - listed : 0);
  const parts = COMPONENT_ORDER.map((id) => [id, bytesOf(id)]).filter(([id, bytes]) => bytes || groups.has(id)).sort((a, b) => b[1] - a[1]);
  const bar = make("div", {class: "bar", "aria-hidden": true}, parts.map(([id, bytes]) =>
    make("div", {class: "fill c-" + id, style: {"flex-grow": bytes / total}, title: COMPONENT_NAMES[id]})));
  const key = make("ul", {class: "key"}, parts.map(([id, bytes]) => make("li", {},
    make("i", {class: "fill c-" + id}), `${COMPONENT_NAMES[id]} `, make("b", {}, formatBytes(bytes)),
    make("span", {class: "soft"}, " " + formatShare(bytes, total)))));
  return [bar, key];
}

function addOverview(tensors) {
  const [count, unit] = splitCount(model.elements || 0);
  const types = model.types.map((type) => type.type);
  const stored = types.length <= 3 ? types.join(", ") : types.slice(0, 2).join(", ") + ` and ${types.length - 2} more`;
  const bits = model.elements ? (8 * model.bytes / model.elements).toFixed(2).replace(/\.?0+$/, "") : "0";
  const hero = make("section", {id: "overview", class: "hero", "aria-labelledby": "title"},
    make("h1", {id: "title"}, model.title), make("p", {class: "kind"}, describeKind()),
    make("dl", {class: "tiles"},
      makeTile("Parameters", count, unit, formatPlural(model.tensors, "tensor")),
      makeTile("Size", formatBytes(model.size), "", `${model.recipe ? model.recipe + ": " : ""}${stored}; ${bits} bits for each parameter`),
      makeVerdictTile(), makeMemoryTile()));
  addLink("overview", "Overview");
  document.getElementById("main").append(hero);
  const rest = make("div", {class: "grid"});
  if (tensors.length) {
    const key = model.types.slice(0, 6).map((type) => make("li", {}, make("b", {}, type.type), ` ${formatBytes(type.bytes)}`,
      make("span", {class: "soft"}, ` in ${formatPlural(type.tensors, "tensor")}`)));
    rest.append(make("div", {class: "card"}, make("h3", {}, "Where the bytes are"), makeBar(tensors),
      make("h3", {style: {margin: "1rem 0 .3rem"}}, "How they are stored"), make("ul", {class: "key"}, key)));
  }
  if (!model.memory.reason && model.memory.types.length) {
    rest.append(make("div", {class: "card"}, make("h3", {}, "Does it fit into my memory?"), makeMachineList(),
      make("p", {class: "note"}, "Weights and a cache of f16, in nine tenths of a machine's memory.")));
  }
  hero.append(rest);
}

// Adds the section with the statements of the files: card, configuration, types.
function addIdentity() {
  const section = addSection("identity", "What it is", null);
  const grid = make("div", {class: "grid"});
  const add = (title, entries) => {
    const shown = entries.filter(([, value]) => value !== "");
    if (shown.length) grid.append(make("div", {class: "card"}, make("h3", {}, title), make("div", {class: "long"}, makePairs(shown))));
  };
  add("Card", [...model.card, ["format", model.format], ["files", formatCount(model.files)],
    ["bytes", formatCount(model.size)], ["quantization", model.recipe]]);
  add("Adapter", model.adapter || []);
  add("Configuration", model.config);
  add("Attributes of the file", model.attributes);
  section.append(grid);
  const rows = model.types.map((type) => make("tr", {}, make("th", {scope: "row"}, type.type),
    make("td", {class: "number"}, formatCount(type.tensors)), make("td", {class: "number"}, formatCount(type.elements)),
    make("td", {class: "number"}, formatBytes(type.bytes)),
    make("td", {class: "number"}, type.elements ? (8 * type.bytes / type.elements).toFixed(2) : "\u2013")));
  section.append(make("div", {class: "card scroll", style: {"margin-top": "1rem"}}, make("table", {},
    make("caption", {class: "hidden"}, "Stored types"),
    make("thead", {}, make("tr", {}, ...["Stored type", "Tensors", "Parameters", "Bytes", "Bits each"].map((text, i) =>
      make("th", {scope: "col", class: i ? "number" : ""}, text)))), make("tbody", {}, rows))));
  const missing = [];
  if (!model.config.length) missing.push("The file states no configuration.");
  if (!model.vocabulary) missing.push("It has no vocabulary.");
  if (!model.chat) missing.push("It has no chat template.");
  if (missing.length) section.append(make("p", {class: "note"}, missing.join(" ")));
}
