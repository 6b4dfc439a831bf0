"use strict";

// Helpers of all sections. Texts from files reach the page as text nodes alone, never as markup, and with their
// characters that change the direction of writing as escapes.

const model = JSON.parse(document.getElementById("model-data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// Makes an element: make("p", {class: "note"}, "text", child, ...). Properties that begin with "on" are listeners.
function make(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

function makeSvg(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, of] of Object.entries(value)) element.style.setProperty(name, of);
    else element.setAttribute(key, value === true ? "" : escapeDirections(String(value)));
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined) element.append(typeof child === "string" ? escapeDirections(child) : child);
  return element;
}

// Replaces characters that would reverse the text and the numbers around them, such as U+202E.
function escapeDirections(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (letter) => "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0"));
}

// Makes a section with a heading, adds it to the page and to the list of sections, and returns it.
function addSection(id, title, about, short) {
  const section = make("section", {id, "aria-labelledby": id + "-title"},
    make("header", {}, make("div", {}, make("h2", {id: id + "-title"}, title), about ? make("p", {}, about) : null)));
  document.getElementById("main").append(section);
  addLink(id, short || title);
  return section;
}

function addLink(id, title) {
  document.getElementById("sections").append(make("li", {}, make("a", {href: "#" + id}, title)));
}

// Reports a change to screen readers.
function announce(text) {
  document.getElementById("said").textContent = escapeDirections(text);
}

// Makes a row of buttons, one of them pressed, from choices: [value, label].
function makeSegments(label, choices, chosen, choose) {
  const buttons = choices.map(([value, text]) => make("button", {
    type: "button", "aria-pressed": String(value === chosen), onclick: () => {
      for (const [i, button] of buttons.entries()) button.setAttribute("aria-pressed", String(choices[i][0] === value));
      choose(value);
    },
  }, text));
  return make("div", {class: "segments", role: "group", "aria-label": label}, buttons);
}

// Makes a list of names and values.
function makePairs(entries) {
  return make("dl", {class: "pairs"}, entries.map(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
}

// These functions write numbers as text.

const grouped = new Intl.NumberFormat("en-US");

function formatCount(count) {
  return count === null ? "2^64 or more" : grouped.format(count);
}

function formatBytes(bytes) {
  if (bytes === null) return "2^64 bytes or more";
  if (bytes < 1000) return bytes + (bytes === 1 ? " byte" : " bytes");
  const units = ["kB", "MB", "GB", "TB", "PB", "EB"];
  let unit = -1;
  do { bytes /= 1000; ++unit; } while (bytes >= 999.5 && unit + 1 < units.length);
  return bytes.toPrecision(3).replace(/^(\d{4,})\..*/, "$1") + "\u00a0" + units[unit];
}

// Returns [number, unit] for a count of parameters: ["7.24", "billion"].
function splitCount(count) {
  for (const [size, unit] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"], [1e3, "thousand"]])
    if (count >= size * 0.9995) return [(count / size).toPrecision(3), unit];
  return [String(count), ""];
}

function formatNumber(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "\u2013";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e6 || size < 1e-4) return number.toExponential(2).replace("e+", "e").replace("-", "\u2212").replace("e-", "e\u2212");
  return String(Number(number.toPrecision(4))).replace("-", "\u2212");
}

function formatShare(part, whole) {
  if (!whole || !part) return "0";
  const share = 100 * part / whole;
  return (share < 0.01 ? "<0.01" : share < 1 ? share.toFixed(2) : share < 99.95 ? share.toFixed(1) : formatCount(Math.round(share))) + "\u00a0%";
}

function formatShape(shape) {
  return shape.length === 0 ? "number" : shape.join(" \u00d7 ");
}

// Returns the pieces of a name, between which a line may break.
function breakName(name) {
  return name.split(/(?<=[._/])/).flatMap((piece, i) => i ? [make("wbr"), piece] : [piece]);
}

function formatPlural(count, noun) {
  return formatCount(count) + " " + noun + (count === 1 ? "" : "s");
}

// These functions unpack data: base64 of deflated bytes.

async function unpack(id) {
  const text = document.getElementById(id).textContent;
  if (text === "") return new Uint8Array();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpackJson(id) {
  const bytes = await unpack(id);
  return bytes.length === 0 ? null : JSON.parse(new TextDecoder().decode(bytes));
}
