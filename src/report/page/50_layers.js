// Curves over the layers: a line for each role, such as self_attn.q_proj.

// Returns round numbers that divide [low, high] into about `count` parts.
function makeTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

// Makes a scale from numbers to places: logarithmic if all are positive and span a factor of 30, else linear with 0.
function makeScale(numbers, from, to) {
  const positive = numbers.filter((number) => number > 0);
  const high = Math.max(...numbers, 0);
  const low = Math.min(...positive, high);
  if (positive.length && high / low >= 30 && positive.length === numbers.length) {
    const first = Math.floor(Math.log10(low));
    const last = Math.max(first + 1, Math.ceil(Math.log10(high)));
    const every = Math.max(1, Math.ceil((last - first) / 6));
    const ticks = [];
    for (let power = first; power <= last; power += every) ticks.push(10 ** power);
    return {ticks, note: "logarithmic", place: (number) => from + (Math.log10(number) - first) / (last - first) * (to - from)};
  }
  const least = Math.min(...numbers, 0);
  const ticks = makeTicks(least, high || 1, 4);
  const top = Math.max(high, ticks[ticks.length - 1]) || 1;
  return {ticks, note: "", place: (number) => from + (number - least) / (top - least || 1) * (to - from)};
}

// Draws one chart. `series`: [{name, color, points: [[x, y], ...]}]; `format` makes the text of a value.
function makeChart(title, about, series, format, xName) {
  const width = 460;
  const height = 240;
  const left = 58;
  const right = width - 10;
  const top = 8;
  const bottom = height - 30;
  const numbers = series.flatMap((one) => one.points.map(([, y]) => y)).filter(Number.isFinite);
  const xs = [...new Set(series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  const scale = makeScale(numbers.length ? numbers : [0], bottom, top);
  const xPlace = (x) => xs.length < 2 ? (left + right) / 2 : left + (x - xs[0]) / (xs[xs.length - 1] - xs[0]) * (right - left);
  const svg = makeSvg("svg", {viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img",
    "aria-label": `${title}. ${about} Arrow keys move through the ${xName}s.`});
  for (const tick of scale.ticks) {
    const y = scale.place(tick);
    svg.append(makeSvg("line", {class: "axis", x1: left, x2: right, y1: y, y2: y}),
      makeSvg("text", {class: "tick", x: left - 8, y: y + 4, "text-anchor": "end"}, format(tick)));
  }
  for (const tick of makeTicks(xs[0] || 0, xs[xs.length - 1] || 1, 6).filter(Number.isInteger)) {
    svg.append(makeSvg("text", {class: "tick", x: xPlace(tick), y: bottom + 17, "text-anchor": "middle"}, String(tick)));
  }
  svg.append(makeSvg("text", {class: "tick", x: right, y: height - 1, "text-anchor": "end"}, xName));
  for (const one of series) {
    const points = one.points.filter(([, y]) => Number.isFinite(y));
    svg.append(makeSvg("polyline", {class: "curve " + one.color, points: points.map(([x, y]) => `${xPlace(x).toFixed(1)},${scale.place(y).toFixed(1)}`).join(" ")}));
    if (points.length <= 48) for (const [x, y] of points) svg.append(makeSvg("circle", {class: "dot " + one.color, cx: xPlace(x), cy: scale.place(y), r: points.length === 1 ? 4 : 2.2}));
  }
  const cursor = makeSvg("line", {class: "cursor", y1: top, y2: bottom, visibility: "hidden"});
  svg.append(cursor);
  const readout = make("div", {class: "readout"}, `Point at a ${xName}, or use the arrow keys, for its numbers.`);
  let at = -1;
  const move = (index, aloud) => {
    at = Math.max(0, Math.min(xs.length - 1, index));
    const x = xs[at];
    cursor.setAttribute("x1", xPlace(x));
    cursor.setAttribute("x2", xPlace(x));
    cursor.setAttribute("visibility", "visible");
    const values = series.map((one) => [one, one.points.find(([px]) => px === x)]).filter(([, point]) => point && Number.isFinite(point[1]));
    readout.replaceChildren(make("b", {}, `${xName} ${x}`), ...values.map(([one, point]) =>
      make("span", {}, make("i", {class: "swatch " + one.color}), `${one.name} ${format(point[1])}`)));
    if (aloud) announce(`${xName} ${x}: ` + values.map(([one, point]) => `${one.name} ${format(point[1])}`).join(", "));
  };
  svg.addEventListener("pointermove", (event) => {
    if (!xs.length) return;
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width;
    let best = 0;
    for (const [i, value] of xs.entries()) if (Math.abs(xPlace(value) - x) < Math.abs(xPlace(xs[best]) - x)) best = i;
    move(best, false);
  });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9}[event.key];
    if (!step || !xs.length) return;
    event.preventDefault();
    move(at < 0 ? (step < 0 ? xs.length - 1 : 0) : at + step, true);
  });
  return make("div", {class: "card chart"}, make("h3", {}, title),
    make("p", {}, about + (scale.note ? " Logarithmic." : "")), svg, readout);
}

// Makes chips that choose roles, and charts that `draw` makes of the chosen ones.
function makeRoleCharts(roles, chosen, draw) {
  const grid = make("div", {class: "grid"});
  const names = [...roles.keys()];
  const colors = new Map(names.slice(0, 64).map((role, i) => [role, "k" + i % 8]));
  const shown = new Set(chosen);
  const redraw = () => grid.replaceChildren(...draw(names.filter((role) => shown.has(role)).map((role) => [role, colors.get(role)])));
  const chips = make("div", {class: "chips", role: "group", "aria-label": "Roles"}, names.slice(0, 64).map((role) => {
    const chip = make("button", {type: "button", class: "chip", "aria-pressed": String(shown.has(role)), onclick: () => {
      if (!shown.delete(role)) shown.add(role);
      chip.setAttribute("aria-pressed", String(shown.has(role)));
      redraw();
    }}, make("i", {class: "swatch " + colors.get(role)}), role);
    return chip;
  }));
  redraw();
  return [chips, grid];
}

// Returns the roles with tensors in two layers or more, those with most bytes first.
function findLayerRoles(tensors) {
  const roles = groupBy(tensors.filter((tensor) => tensor.layer !== null), (tensor) => tensor.role);
  const kept = [...roles].filter(([, items]) => new Set(items.map((tensor) => tensor.layer)).size > 1);
  kept.sort((a, b) => sumBy(b[1], (tensor) => tensor.bytes) - sumBy(a[1], (tensor) => tensor.bytes));
  return new Map(kept);
}

function addLayers(tensors) {
  const roles = findLayerRoles(tensors.filter((tensor) => !tensor.problem && tensor.elements));
  if (!roles.size) return;
  const section = addSection("layers", "Layer by layer",
    "How large the numbers of each role are, and how many stand out. A jump in one layer deserves a look.", "Layers");
  // The tensors of a role in a layer, such as experts, count together.
  const trace = (role, of) => [...groupBy(roles.get(role), (tensor) => tensor.layer)]
    .sort((a, b) => a[0] - b[0]).map(([layer, items]) => [layer, of(items)]);
  const squares = (items) => sumBy(items, (tensor) => tensor.rms * tensor.rms * tensor.elements);
  const count = (items) => sumBy(items, (tensor) => tensor.elements);
  const metrics = [
    ["Norm", "Root of the sum of squares (Frobenius).", (items) => Math.sqrt(squares(items)), formatNumber],
    ["Sigma", "Standard deviation.", (items) => Math.sqrt(sumBy(items, (tensor) => tensor.std * tensor.std * tensor.elements) / count(items)), formatNumber],
    ["Outliers", "Share of numbers further than six sigma from the mean, in millionths.",
      (items) => 1e6 * sumBy(items, (tensor) => tensor.outliers) / count(items), formatNumber],
  ];
  const matrices = [...roles.keys()].filter((role) => roles.get(role)[0].shape.length > 1);
  const chosen = (matrices.length ? matrices : [...roles.keys()]).slice(0, 8);
  section.append(...makeRoleCharts(roles, chosen, (shown) => metrics.map(([title, about, of, format]) =>
    makeChart(title, about, shown.map(([role, color]) => ({name: role, color, points: trace(role, of)})), format, "layer"))));
}
