// The comparison with the model that this one was made from (--against): what quantizing cost, and where.

let differences = [];

// Gives each tensor its difference, as `against`.
function joinComparison(tensors, rows) {
  differences = (rows || []).map(([name, what, before, after, values]) => ({name, what, before, after, ...values}));
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  for (const difference of differences) {
    difference.tensor = byName.get(difference.name) || null;
    if (difference.tensor) difference.tensor.against = difference;
  }
}

// Returns true if numbers of both models were compared.
function hasCost(difference) {
  return difference.rms !== undefined;
}

function formatRatio(snr) {
  return snr === null ? "exact" : snr === "zero" ? "\u2212\u221e\u00a0dB" : typeof snr === "number" ? snr.toFixed(1) + "\u00a0dB" : "\u2013";
}

// Returns the entries of the dialog about a tensor's difference.
function describeCost(difference) {
  const entries = [["against " + model.against.title, `${difference.before} \u2192 ${difference.after}`]];
  if (hasCost(difference)) {
    entries.push(["signal to noise", formatRatio(difference.snr)], ["error, root mean square", formatNumber(difference.rms)],
      ["worst error", formatNumber(difference.max) + (difference.place ? ` at [${difference.place.join(", ")}]` : "")],
      ["numbers that differ", formatCount(difference.different)]);
  }
  return entries;
}

// Returns the sums of squares of the original's numbers and of the errors, the number of tensors that were compared,
// and of those with an error that is not finite, which the sums leave out. The sums are in units of the largest number's
// square, so that squares of float64 numbers neither overflow nor become 0.
function sumCost(tensors) {
  const getFinite = (number) => Number.isFinite(number) ? number : 0;
  const unit = tensors.reduce((most, tensor) => Math.max(most, getFinite(tensor.rms), getFinite(tensor.against?.rms)), 0) || 1;
  const sums = {signal: 0, noise: 0, compared: 0, broken: 0};
  for (const tensor of tensors) {
    const cost = tensor.against;
    if (tensor.problem || !tensor.elements || (cost && !hasCost(cost))) continue;
    ++sums.compared;
    if (cost && !Number.isFinite(cost.rms)) {
      ++sums.broken;
      continue;
    }
    const noise = cost ? (cost.rms / unit) ** 2 * tensor.elements : 0;
    sums.noise += noise;
    if (cost && typeof cost.snr === "number") sums.signal += noise * 10 ** (cost.snr / 10);
    else if (!noise && Number.isFinite(tensor.rms)) sums.signal += (tensor.rms / unit) ** 2 * tensor.elements;
  }
  return sums;
}

// Returns null if there is no error, and NaN if the ratio is not known.
function toDecibels({signal, noise, compared, broken}) {
  if (!compared || !Number.isFinite(signal) || !Number.isFinite(noise)) return NaN;
  if (noise > 0) return 10 * Math.log10(signal / noise);
  return broken ? NaN : null;
}

// Makes the tile of all tensors. `absent` is true if some tensors were not compared.
function makeRatioTile(total, absent) {
  const decibels = toDecibels(total);
  const broken = total.broken ? `; ${formatPlural(total.broken, "tensor")} with an error that is not finite left out` : "";
  if (!total.compared) return makeTile("Signal to noise", "\u2013", "", "no tensor has the same name and shape in both", "warn");
  if (decibels === null) return makeTile("Signal to noise", "exact", "", absent ? "all numbers that were compared are the same" : "all numbers are the same");
  if (!Number.isFinite(decibels)) return makeTile("Signal to noise", "\u2013", "", "it is not a finite number" + broken, "warn");
  return makeTile("Signal to noise", decibels.toFixed(1), "dB", `the error is ${formatShare(Math.sqrt(total.noise), Math.sqrt(total.signal))} of the numbers, over all tensors` + broken, broken ? "warn" : "");
}

function addComparison(tensors) {
  const against = model.against;
  if (!against) return;
  const about = against.problem ? null : `${formatPlural(against.different, "tensor")} differ${against.different === 1 ? "s" : ""} and ${formatCount(against.equal)} ` +
    `${against.equal === 1 ? "is" : "are"} equal. Numbers are compared as they decode.`;
  const section = addSection("comparison", "Against " + against.title, about, "Comparison");
  if (against.problem) {
    section.append(make("ul", {class: "findings"}, make("li", {class: "bad"}, make("b", {}, "\u2717 Not compared"), against.problem)));
    return;
  }
  const costs = differences.filter(hasCost);
  const finite = costs.filter((difference) => typeof difference.snr === "number");
  const worst = finite.reduce((a, b) => a && a.snr <= b.snr ? a : b, null);
  const largest = costs.reduce((a, b) => a && !(b.max > a.max) ? a : b, null);
  const tiles = [makeRatioTile(sumCost(tensors), differences.some((difference) => !hasCost(difference))),
  makeTile("Size", formatShare(model.size, against.size), "", `${formatBytes(model.size)} of ${formatBytes(against.size)}`)];
  if (worst) tiles.splice(1, 0, makeTile("Lost most", worst.snr.toFixed(1), "dB", breakName(worst.name)));
  if (largest) tiles.splice(2, 0, makeTile("Largest error", formatNumber(largest.max), "", breakName(largest.name)));
  section.append(make("dl", {class: "tiles"}, tiles));
  addCostCharts(section, finite);
  if (differences.length) addCostTable(section);
  if (against.fields.length) {
    section.append(make("details", {}, make("summary", {}, `${formatPlural(against.fields.length + against.more_fields, "field")} of card, configuration, vocabulary and attributes differ`),
      make("div", {class: "card scroll"}, make("table", {}, make("caption", {class: "hidden"}, "Fields that differ"),
        make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Field"), make("th", {scope: "col"}, against.title), make("th", {scope: "col"}, model.title))),
        make("tbody", {}, against.fields.map(([field, before, after]) => make("tr", {}, make("td", {class: "name"}, breakName(field)), make("td", {class: "name"}, before), make("td", {class: "name"}, after)))))),
      against.more_fields ? make("p", {class: "note"}, `And ${formatCount(against.more_fields)} more: poise diff lists all.`) : null));
  }
}

function addCostCharts(section, finite) {
  const roles = findLayerRoles(finite.map((difference) => difference.tensor).filter(Boolean));
  if (!roles.size) return;
  const trace = (role, of) => [...groupBy(roles.get(role), (tensor) => tensor.layer)].sort((a, b) => a[0] - b[0]).map(([layer, items]) => [layer, of(items)]);
  const metrics = [
    ["Signal to noise", "In decibels; higher is better, and 6 dB are a factor of 2.", (items) => { const decibels = toDecibels(sumCost(items)); return Number.isFinite(decibels) ? decibels : null; }, (number) => formatNumber(Number(number.toFixed(1)))],
    ["Worst error", "The largest distance between a number and its original.", (items) => Math.max(...items.map((tensor) => tensor.against.max || 0)), formatNumber],
  ];
  section.append(...makeRoleCharts(roles, [...roles.keys()].slice(0, 8), (shown) => metrics.map(([title, about, of, format]) =>
    makeChart(title, about, shown.map(([role, color]) => ({name: role, color, points: trace(role, of)})), format, "layer"))));
}

function addCostTable(section) {
  const makeNumberColumn = (name, key, format, first, wide) => ({name, class: "number" + (wide ? " wide" : ""), first, key: (row) => row[key] === undefined || typeof row[key] === "string" ? null : row[key],
    cell: (row) => hasCost(row) ? format(row[key]) : "\u2013"});
  const table = makeTable("Tensors that differ", [
    {name: "Name", class: "name", key: (row) => row.name, cell: (row) => row.tensor
      ? make("button", {type: "button", onclick: () => showTensor(row.tensor)}, breakName(row.name)) : make("span", {}, breakName(row.name))},
    {name: "Before", class: "wide", key: (row) => row.before, cell: (row) => row.before},
    {name: "After", class: "wide", key: (row) => row.after, cell: (row) => row.after},
    makeNumberColumn("Signal to noise", "snr", formatRatio, "ascending"),
    makeNumberColumn("Error (rms)", "rms", formatNumber, "descending", true),
    makeNumberColumn("Worst error", "max", formatNumber, "descending"),
    makeNumberColumn("Differ", "different", formatCount, "descending", true),
  ], "tensor");
  section.append(make("div", {style: {"margin-top": "1rem"}}, table.parts));
  table.show([...differences].sort((a, b) => (typeof a.snr === "number" ? a.snr : Infinity) - (typeof b.snr === "number" ? b.snr : Infinity)));
}
