// The treemap: rectangles whose areas are bytes. A click, or Enter, zooms into a group; Escape goes back.

// Returns [{x, y, w, h}] for sizes in descending order, each rectangle as square as it can be (Bruls, Huizing and
// van Wijk, "Squarified Treemaps").
function layOut(sizes, x, y, w, h) {
  const total = sizes.reduce((a, b) => a + b, 0);
  const boxes = [];
  if (total <= 0 || w <= 0 || h <= 0) return sizes.map(() => ({x, y, w: 0, h: 0}));
  const areas = sizes.map((size) => size / total * w * h);
  let first = 0;
  while (first < areas.length) {
    const side = Math.min(w, h);
    let sum = 0;
    let end = first;
    let worst = Infinity;
    while (end < areas.length) {
      const next = sum + areas[end];
      const ratio = Math.max(side * side * areas[first] / (next * next), next * next / (side * side * areas[end] || 1e-9));
      if (ratio > worst) break;
      worst = ratio;
      sum = next;
      ++end;
    }
    const thick = side > 0 ? sum / side : 0;
    let at = 0;
    for (let i = first; i < end; ++i) {
      const length = thick > 0 ? areas[i] / thick : 0;
      boxes.push(w >= h ? {x, y: y + at, w: thick, h: length} : {x: x + at, y, w: length, h: thick});
      at += length;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    first = end;
  }
  return boxes;
}

function makeNode(name, children, tensor) {
  const node = {name, children, tensor, parent: null};
  node.bytes = tensor ? tensor.bytes : sumBy(children, (child) => child.bytes);
  node.component = tensor ? tensor.component : null;
  if (children) {
    children.sort((a, b) => b.bytes - a.bytes);
    for (const child of children) child.parent = node;
    const groups = groupBy(children, (child) => child.component);
    node.component = groups.size === 1 ? children[0].component : null;
  }
  return node;
}

const MOST_PARTS = 300;  // of a group that are always drawn and listed

function formatLayer(layer) {
  return layer === null ? "Outside the layers" : "Layer " + layer;
}

// Returns the root of a tree: components divided into layers, or layers divided into components.
function makeTree(tensors, byComponent) {
  const leaf = (tensor) => makeNode(tensor.layer === null ? tensor.name : tensor.role, null, tensor);
  const split = (items, levels) => {
    if (levels.length === 0 || items.length === 1) return items.map(leaf);
    const groups = [...groupBy(items, levels[0].key)];
    if (groups.length === 1) return split(items, levels.slice(1));
    return groups.map(([key, group]) => {
      const children = split(group, levels.slice(1));
      return children.length === 1 && children[0].tensor ? children[0] : makeNode(levels[0].name(key), children, null);
    });
  };
  const component = {key: (tensor) => tensor.component, name: (id) => COMPONENT_NAMES[id]};
  const layer = {key: (tensor) => tensor.layer, name: formatLayer};
  const tree = makeNode("All", split(tensors, byComponent ? [component, layer] : [layer, component]), null);
  return tree;
}

function addTreemap(tensors) {
  const section = addSection("bytes", "Bytes by component and layer",
    "Areas are bytes as stored. Click a group to zoom in, a tensor to see its numbers; Escape goes back.", "Bytes");
  const crumbs = make("ol", {class: "crumbs", "aria-label": "Place in the treemap"});
  const map = make("div", {class: "treemap", role: "group", "aria-label": "Treemap of bytes"});
  const list = make("tbody", {});
  const rest = make("p", {class: "note", hidden: true});
  let root = makeTree(tensors, true);
  let shown = root;

  // Places are shares of the box around, so that a print of another width shows the same.
  const place = (box, width, height, gap) => ({left: 100 * box.x / width + "%", top: 100 * box.y / height + "%",
    width: `calc(${100 * box.w / width}% - ${gap}px)`, height: `calc(${100 * box.h / height}% - ${gap}px)`});
  const colorOf = (node) => "c-" + (node.component || "other");
  const open = (node) => {
    if (node.tensor) return showTensor(node.tensor);
    shown = node;
    draw();
    announce(`${node.name}: ${formatBytes(node.bytes)}, ${formatPlural(node.children.length, "part")}`);
    const first = map.querySelector("button");
    if (first) first.focus({preventScroll: true});
  };
  const draw = () => {
    const path = [];
    for (let node = shown; node; node = node.parent) path.unshift(node);
    crumbs.replaceChildren(...path.map((node) => make("li", {}, node === shown
      ? make("span", {"aria-current": "location"}, `${node.name} \u00b7 ${formatBytes(node.bytes)}`)
      : make("button", {type: "button", onclick: () => open(node)}, node.name))));
    const width = map.clientWidth;
    const height = map.clientHeight;
    const gap = 2;
    const boxes = layOut(shown.children.map((node) => node.bytes), 0, 0, width, height);
    map.replaceChildren(...shown.children.map((node, i) => {
      const box = boxes[i];
      if (i >= MOST_PARTS && box.w * box.h < 16) return "";  // too small to see or to hit
      const w = Math.max(0, box.w - gap);
      const h = Math.max(0, box.h - gap);
      const share = formatShare(node.bytes, shown.bytes);
      const button = make("button", {
        type: "button", class: colorOf(node), title: `${node.name}: ${formatBytes(node.bytes)}, ${share}`,
        "aria-label": `${node.name}, ${formatBytes(node.bytes)}, ${share}, ${node.tensor ? "shows its numbers" : "zooms in"}`,
        onclick: () => open(node),
        style: place(box, width, height, gap),
      });
      const hasLabel = w > 44 && h > 18;
      if (node.children && w > 30 && h > 44) {
        const top = hasLabel ? 22 : 4;
        const inner = layOut(node.children.map((child) => child.bytes), 4, top, w - 8, h - top - 4);
        for (const [j, cell] of inner.entries()) {
          if (cell.w < 4 || cell.h < 4) continue;
          const text = cell.w > 48 && cell.h > 18 ? node.children[j].name : "";
          button.append(make("span", {class: "cell", "aria-hidden": true, style: place(cell, w, h, gap)}, text));
        }
      }
      if (hasLabel) button.append(make("span", {class: "label"}, make("b", {}, node.name), w > 110 ? formatBytes(node.bytes) : null));
      return button;
    }));
    rest.hidden = shown.children.length <= MOST_PARTS;
    rest.textContent = `The table has the ${MOST_PARTS} largest of ${formatCount(shown.children.length)} parts.`;
    list.replaceChildren(...shown.children.slice(0, MOST_PARTS).map((node) => make("tr", {},
      make("td", {class: "name"}, make("button", {type: "button", onclick: () => open(node)}, node.name)),
      make("td", {class: "number"}, formatBytes(node.bytes)), make("td", {class: "number"}, formatShare(node.bytes, shown.bytes)))));
  };
  section.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !shown.parent) return;
    event.preventDefault();
    open(shown.parent);
  });
  const choose = (by) => {
    root = makeTree(tensors, by === "component");
    shown = root;
    draw();
  };
  section.querySelector("header").append(make("div", {class: "tools", style: {flex: "none"}},
    makeSegments("Order of the treemap", [["component", "By component"], ["layer", "By layer"]], "component", choose)));
  section.append(make("div", {class: "card"}, crumbs, map,
    make("ul", {class: "key", style: {"margin-top": ".7rem"}}, COMPONENT_ORDER.filter((id) => tensors.some((tensor) => tensor.component === id))
      .map((id) => make("li", {}, make("i", {class: "fill c-" + id}), COMPONENT_NAMES[id])))),
    make("details", {}, make("summary", {}, "The same as a table"), make("div", {class: "card scroll long"}, make("table", {},
      make("caption", {class: "hidden"}, "Parts of the group that the treemap shows"),
      make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Part"), make("th", {scope: "col", class: "number"}, "Bytes"),
        make("th", {scope: "col", class: "number"}, "Share"))), list)), rest));
  if (model.listed < model.tensors) section.append(make("p", {class: "note"}, `Without ${formatPlural(model.tensors - model.listed, "smaller tensor")}, which the page does not list.`));
  draw();
  new ResizeObserver(() => { if (map.clientWidth) draw(); }).observe(map);
}
