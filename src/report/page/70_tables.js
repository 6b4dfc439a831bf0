// Tables with search: tensors and tokens. Both show some rows, and more on demand.

const ROWS = 25;

// Makes a table that sorts and grows. `columns`: {name, key, cell, class, first}; `key` returns the value to sort by.
function makeTable(caption, columns, noun) {
  const body = make("tbody", {});
  const status = make("p", {class: "note", role: "status"});
  const more = make("button", {type: "button", class: "button more", onclick: () => { shown += 8 * ROWS; draw(); }}, "Show more");
  let items = [];
  let shown = ROWS;
  let sorted = null;
  let descending = false;
  const heads = columns.map((column) => make("th", {scope: "col", class: column.class || ""}, column.key
    ? make("button", {type: "button", onclick: () => sortBy(column)}, column.name) : column.name));
  const sortBy = (column) => {
    descending = sorted === column ? !descending : column.first === "descending";
    sorted = column;
    for (const [i, head] of heads.entries()) {
      if (columns[i] === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    draw();
  };
  const draw = () => {
    let rows = items;
    if (sorted) {
      const sign = descending ? -1 : 1;
      const isEmpty = (key) => key === null || key === undefined || Number.isNaN(key);
      rows = [...items].sort((a, b) => {
        const x = sorted.key(a);
        const y = sorted.key(b);
        if (isEmpty(x) || isEmpty(y)) return isEmpty(x) - isEmpty(y);  // rows without a value come last
        return sign * (typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y);
      });
    }
    body.replaceChildren(...rows.slice(0, shown).map((item) => make("tr", {}, columns.map((column) =>
      make("td", {class: column.class || ""}, column.cell(item))))));
    more.hidden = rows.length <= shown;
    status.textContent = rows.length <= shown ? formatPlural(rows.length, noun)
      : `The first ${formatCount(shown)} of ${formatPlural(rows.length, noun)}`;
  };
  const table = make("div", {class: "card scroll", style: {padding: "0"}}, make("table", {}, make("caption", {class: "hidden"}, caption),
    make("thead", {}, make("tr", {}, heads)), body));
  return {parts: [table, more, status], show: (chosen) => { items = chosen; shown = ROWS; draw(); }};
}

// Makes a field of search that calls `search` soon after the last letter.
function makeSearch(label, search) {
  let timer = 0;
  return make("input", {type: "search", "aria-label": label, placeholder: label, spellcheck: "false", autocomplete: "off", oninput: (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => search(event.target.value), 120);
  }});
}

// Returns a test of texts: each word of the search occurs, in any order; * stands for any letters.
function makeMatcher(search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean).map((word) =>
    new RegExp(word.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*"), "s"));
  return (text) => words.every((word) => word.test(text));
}

function addTensorTable(tensors) {
  const section = addSection("tensors", "Tensors", "Search by name, type or shape; sort by a column. A name opens the tensor.", "Tensors");
  const makeNumberColumn = (name, key, format, wide) => ({name, class: "number" + (wide ? " wide" : ""), key: (tensor) => tensor[key], first: "descending",
    cell: (tensor) => tensor.problem && !["bytes", "elements"].includes(key) ? "\u2013" : format(tensor[key], tensor)});
  const columns = [
    {name: "Name", class: "name", key: (tensor) => tensor.name, cell: (tensor) => make("button", {type: "button", onclick: () => showTensor(tensor)}, breakName(tensor.name))},
    {name: "Shape", class: "whole", key: (tensor) => tensor.elements, first: "descending", cell: (tensor) => formatShape(tensor.shape)},
    {name: "Type", class: "", key: (tensor) => tensor.type, cell: (tensor) => tensor.type},
    makeNumberColumn("Bytes", "bytes", formatBytes),
    makeNumberColumn("Smallest", "min", formatNumber, true),
    makeNumberColumn("Largest", "max", formatNumber, true),
    makeNumberColumn("Mean", "mean", formatNumber, true),
    makeNumberColumn("Sigma", "std", formatNumber, true),
    makeNumberColumn("Zeros", "zeros", (count, tensor) => formatShare(count, tensor.elements), true),
    makeNumberColumn("Outliers", "outliers", formatCount, true),
  ];
  if (tensors.some((tensor) => tensor.nan || tensor.inf)) {
    columns.push({name: "Not finite", class: "number", first: "descending", key: (tensor) => tensor.nan + tensor.inf, cell: (tensor) => formatCount(tensor.nan + tensor.inf)});
  }
  const table = makeTable("Tensors", columns, "tensor");
  const texts = tensors.map((tensor) => [tensor.name, tensor.file_name || "", tensor.type, tensor.shape.join("x")].join(" ").toLowerCase());
  const search = makeSearch("Search tensors", (words) => {
    const matches = makeMatcher(words);
    table.show(tensors.filter((tensor, i) => matches(texts[i])));
  });
  section.append(make("div", {class: "tools", style: {"margin-bottom": ".8rem"}}, search), ...table.parts);
  table.show(tensors);
  if (model.listed < model.tensors) {
    section.append(make("p", {class: "note"}, `The page lists the ${formatCount(model.listed)} largest of ${formatCount(model.tensors)} tensors, so that it stays small.`));
  }
}

const TOKEN_TYPES = ["", "byte", "control", "unknown", "unused", "begin of text", "end of text", "padding", "user-defined"];

function addVocabulary(data) {
  if (!data) return;
  const about = model.vocabulary;
  const section = addSection("vocabulary", "Vocabulary", `${formatPlural(about.size, "token")}` +
    (about.merges ? `, ${formatPlural(about.merges, "merge")}` : "") + ". Search for a text, or for an id as #123.", "Vocabulary");
  // `lengths` has those of the tokens whose texts are cut.
  const tokens = data.texts.map((text, id) => ({id, text, length: data.lengths[id] ?? [...text].length, type: TOKEN_TYPES[Number(data.types[id])] || ""}));
  const table = makeTable("Tokens", [
    {name: "Id", class: "number narrow", key: (token) => token.id, cell: (token) => String(token.id)},
    {name: "Token", class: "", key: (token) => token.text, cell: (token) => make("code", {class: "token"}, token.text)},
    {name: "Length", class: "number", key: (token) => token.length, first: "descending", cell: (token) => formatCount(token.length)},
    {name: "Kind", class: "", key: (token) => token.type, first: "descending", cell: (token) => token.type},
  ], "token");
  const search = makeSearch("Search tokens", (text) => {
    const id = text.match(/^#(\d+)$/);
    const wanted = text.toLowerCase();
    table.show(id ? tokens.filter((token) => token.id === Number(id[1]))
      : text === "" ? tokens : tokens.filter((token) => token.text.toLowerCase().includes(wanted)));
  });
  const special = [["bos", about.bos_id], ["eos", about.eos_id], ["pad", about.pad_id], ["unk", about.unk_id]]
    .filter(([, id]) => id >= 0 && id < tokens.length).map(([name, id]) => [name, make("span", {}, `${id} `, make("code", {class: "token"}, tokens[id].text))]);
  if (special.length) section.append(make("div", {class: "card", style: {"margin-bottom": ".9rem"}}, makePairs(special)));
  section.append(make("div", {class: "tools", style: {"margin-bottom": ".8rem"}}, search), ...table.parts);
  table.show(tokens);
  if (tokens.length < about.size) {
    section.append(make("p", {class: "note"}, `The page has the first ${formatCount(tokens.length)} of ${formatCount(about.size)} tokens, so that it stays small.`));
  }
}
