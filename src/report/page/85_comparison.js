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
  return snr === null ? "exact" : typeof snr === "number" ? snr.toFixed(1) + "\u00a0dB" : "\u2013";
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

// Returns the sums of squares of tensors' numbers and of their errors. Numbers of the model stand for the original's,
// from which they differ by little.
function sumCost(tensors) {
  let signal = 0;
  let noise = 0;
  for (const tensor of tensors) {
    if (tensor.problem || !tensor.elements || tensor.rms === null) continue;
    const cost = tensor.against;
    signal += tensor.rms * tensor.rms * tensor.elements;
    if (cost && hasCost(cost) && Number.isFinite(cost.rms)) noise += cost.rms * cost.rms * tensor.elements;
  }
  return {signal, noise};
}

function toDecibels({signal, noise}) {
  return noise > 0 && signal > 0 ? 10 * Math.log10(signal / noise) : null;
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
  const compared = tensors.filter((tensor) => !tensor.against || hasCost(tensor.against));
  const total = sumCost(compared);
  const decibels = toDecibels(total);
  const tiles = [makeTile("Signal to noise", decibels === null ? "exact" : decibels.toFixed(1), decibels === null ? "" : "dB",
    decibels === null ? "all numbers are the same" : `the error is ${formatShare(Math.sqrt(total.noise), Math.sqrt(total.signal))} of the numbers, over all tensors`),
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
    ["Signal to noise", "In decibels; higher is better, and 6 dB are a factor of 2.", (items) => toDecibels(sumCost(items)), (number) => formatNumber(Number(number.toFixed(1)))],
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
