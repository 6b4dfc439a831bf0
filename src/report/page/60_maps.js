// Heat maps: each cell is the root mean square of a few rows and columns. This file also has the dialog about one
// tensor.

// Some colours of viridis, from low to high; those between are mixed.
const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const STEPS = 20;  // codes for a factor of 2; 128 is the tensor's own root mean square
const NOT_FINITE = [230, 30, 90];

let mapBytes = new Uint8Array();

function mixColor(share) {
  const place = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(place));
  return VIRIDIS[i].map((value, channel) => Math.round(value + (VIRIDIS[i + 1][channel] - value) * (place - i)));
}

function readCells(map) {
  return mapBytes.subarray(map[0], map[0] + map[1] * map[2]);
}

// Returns the codes that the ends of the colours stand for. A range of less than a factor of 2 is widened: else noise
// would look like structure.
function findRange(cells) {
  const codes = cells.filter((code) => code !== 0 && code !== 255).sort();
  if (!codes.length) return [128, 128 + STEPS];
  // A few cells may be darker or brighter than the ends: else one loud cell would hide all others.
  const spared = Math.floor(codes.length / 200);
  const low = codes[spared];
  const high = codes[codes.length - 1 - spared];
  const middle = (low + high) / 2;
  const half = Math.max(STEPS / 2, (high - low) / 2);
  return [middle - half, middle + half];
}

function decodeCell(code, unit) {
  return Math.min(Number.MAX_VALUE, unit * 2 ** ((code - 128) / STEPS));
}

function drawMap(canvas, map) {
  const cells = readCells(map);
  const [low, high] = findRange(cells);
  canvas.width = map[2];
  canvas.height = map[1];
  const context = canvas.getContext("2d");
  const image = context.createImageData(map[2], map[1]);
  for (const [i, code] of cells.entries()) {
    const color = code === 255 ? NOT_FINITE : code === 0 ? [20, 8, 26] : mixColor((code - low) / (high - low));
    image.data.set([...color, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return [low, high];
}

// Makes the figure of a map with its scale. `unit`: the number that code 128 stands for.
function makeMapFigure(map, shape, unit, title) {
  const canvas = make("canvas", {role: "img", "aria-label": `${title}: ${map[1]} by ${map[2]} cells`});
  const [low, high] = drawMap(canvas, map);
  const height = map[1] === 1 ? 3 : Math.max(24, Math.min(64, 64 * (shape[shape.length - 2] || 1) / shape[shape.length - 1]));
  canvas.style.setProperty("aspect-ratio", `64 / ${height}`);
  const ramp = make("canvas", {class: "ramp", width: 64, height: 1, "aria-hidden": true});
  const context = ramp.getContext("2d");
  for (let i = 0; i < 64; ++i) {
    context.fillStyle = `rgb(${mixColor(i / 63).join(" ")})`;
    context.fillRect(i, 0, 1, 1);
  }
  ramp.style.setProperty("height", ".7rem");
  return make("div", {}, make("h3", {style: {"margin-bottom": ".5rem"}}, title), canvas,
    make("p", {class: "small soft", style: {margin: ".35rem 0 .5rem"}}, map[1] === 1 ? "From the first element to the last."
      : `Rows downwards, columns to the right; a cell has ${formatNumber(shape.slice(0, -1).reduce((a, b) => a * b, 1) / map[1])} \u00d7 ${formatNumber(shape[shape.length - 1] / map[2])} numbers.`),
    ramp, make("div", {class: "scale"}, make("span", {}, formatNumber(decodeCell(low, unit))),
      make("span", {}, "rms of a cell"), make("span", {}, formatNumber(decodeCell(high, unit)))));
}

function makeHistogram(tensor) {
  const [low, high, counts] = tensor.histogram;
  const width = 460;
  const height = 230;
  const bottom = height - 24;
  const most = Math.max(...counts, 1);
  const step = (width - 8) / counts.length;
  const svg = makeSvg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", class: "histogram",
    "aria-label": `Histogram from ${formatNumber(low)} to ${formatNumber(high)}: most numbers are near ${formatNumber(low + (counts.indexOf(most) + 0.5) / counts.length * (high - low))}`});
  for (const [i, count] of counts.entries()) {
    const size = count / most * (bottom - 6);
    if (count) svg.append(makeSvg("rect", {class: "column", x: 4 + i * step, y: bottom - Math.max(1, size), width: Math.max(1, step - 1), height: Math.max(1, size)}));
  }
  svg.append(makeSvg("line", {class: "axis", x1: 0, x2: width, y1: bottom, y2: bottom}));
  const ends = [[4, low, "start"], [width / 2, (low + high) / 2, "middle"], [width - 4, high, "end"]];
  for (const [x, number, anchor] of ends) svg.append(makeSvg("text", {class: "tick", x, y: height - 6, "text-anchor": anchor}, formatNumber(number)));
  return make("div", {class: "chart"}, make("h3", {style: {"margin-bottom": ".5rem"}}, "Histogram"), svg,
    make("p", {}, "Of a sample; numbers beyond four sigma count at the ends."));
}

let allTensors = [];

// Shows the dialog of a tensor.
function showTensor(tensor) {
  const dialog = document.getElementById("tensor");
  const step = (by) => showTensor(allTensors[(tensor.index + by + allTensors.length) % allTensors.length]);
  const against = tensor.against;
  const maps = make("div", {class: "stack"});
  if (tensor.map) maps.append(makeMapFigure(tensor.map, tensor.shape, tensor.rms, "Magnitudes"));
  if (against && against.map) maps.append(makeMapFigure(against.map, tensor.shape, against.rms, "Error of quantizing"));
  const facts = make("div", {class: "stack"});
  if (tensor.histogram) facts.append(makeHistogram(tensor));
  const entries = [["shape", formatShape(tensor.shape)], ["type", tensor.type], ["bytes", formatCount(tensor.bytes)],
    ["numbers", formatCount(tensor.elements)]];
  if (tensor.file_name) entries.push(["name in the file", tensor.file_name]);
  if (tensor.problem) entries.push(["no numbers", tensor.problem]);
  else {
    entries.push(["smallest, largest", `${formatNumber(tensor.min)}, ${formatNumber(tensor.max)}`],
      ["mean, sigma", `${formatNumber(tensor.mean)}, ${formatNumber(tensor.std)}`], ["root mean square", formatNumber(tensor.rms)],
      ["zeros", `${formatCount(tensor.zeros)} (${formatShare(tensor.zeros, tensor.elements)})`],
      ["outliers", `${formatCount(tensor.outliers)} beyond six sigma`]);
    if (tensor.nan || tensor.inf) entries.push(["not finite", `${formatCount(tensor.nan)} NaN, ${formatCount(tensor.inf)} infinite`]);
    if (tensor.channel && tensor.rms) entries.push(["loudest row", `${tensor.channel[0]}: ${(tensor.channel[1] / tensor.rms).toFixed(1)} times the root mean square`]);
  }
  if (against) entries.push(...describeCost(against));
  facts.append(makePairs(entries));
  const digests = (tensor.sha256 || []).map(([role, digest]) => [`SHA-256 of ${role}`, make("code", {class: "hash"}, digest)]);
  dialog.replaceChildren(
    make("header", {}, make("h2", {id: "tensor-title"}, breakName(tensor.name)), make("div", {class: "buttons"},
      make("button", {type: "button", class: "button", "aria-label": "Previous tensor", onclick: () => step(-1)}, "\u2190"),
      make("button", {type: "button", class: "button", "aria-label": "Next tensor", onclick: () => step(1)}, "\u2192"),
      make("button", {type: "button", class: "button", "aria-label": "Close", onclick: () => dialog.close()}, "\u2715"))),
    make("div", {class: "pair"}, maps.childNodes.length ? maps : null, facts), digests.length ? makePairs(digests) : null);
  if (!dialog.open) dialog.showModal();
}

function addGallery(tensors) {
  const mapped = tensors.filter((tensor) => tensor.map && tensor.map[1] > 1);
  if (!mapped.length) return;
  const section = addSection("matrices", "Every matrix",
    "Magnitudes in each matrix, dark to bright, each on a scale of its own. Stripes are loud rows or columns; a black field holds zeros. Click one for its histogram and numbers.", "Matrices");
  const notes = [];
  const maps = model.maps;
  if (maps.count < maps.of) notes.push(`The ${formatCount(maps.count)} largest of ${formatCount(maps.of)} matrices have a map, so that the page stays small.`);
  const groups = [...groupBy(mapped, (tensor) => tensor.layer === null ? "Outside the layers" : tensor.role)];
  groups.sort((a, b) => (a[0] === "Outside the layers" ? 1 : 0) - (b[0] === "Outside the layers" ? 1 : 0));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      drawMap(entry.target, tensors[Number(entry.target.dataset.index)].map);
    }
  }, {rootMargin: "600px"});
  const gallery = make("div", {class: "card gallery"});
  const most = 400;  // of a role; experts may be thousands
  for (const [role, items] of groups) {
    const row = make("ol", {});
    const add = (some) => {
      for (const tensor of some) {
        const canvas = make("canvas", {"data-index": tensor.index, "aria-hidden": true});
        watcher.observe(canvas);
        row.append(make("li", {}, make("button", {type: "button", title: tensor.name, "aria-label": tensor.name, onclick: () => showTensor(tensor)},
          canvas, make("span", {}, tensor.layer === null ? "" : String(tensor.layer)))));
      }
    };
    add(items.slice(0, most));
    const parts = [make("h3", {}, role), row];
    if (items.length > most) {
      const button = make("button", {type: "button", class: "button", onclick: () => { add(items.slice(most)); button.remove(); }},
        `Show ${formatCount(items.length - most)} more`);
      parts.push(button);
    }
    gallery.append(make("div", {class: "row"}, parts));
  }
  section.append(gallery);
  if (notes.length) section.append(make("p", {class: "note"}, notes.join(" ")));
  addEventListener("beforeprint", () => {
    for (const canvas of gallery.querySelectorAll("canvas")) drawMap(canvas, tensors[Number(canvas.dataset.index)].map);
  });
}
