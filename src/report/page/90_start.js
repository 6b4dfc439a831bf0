// Marks the section that is on the screen in the list of sections.
function watchSections() {
  const links = [...document.querySelectorAll("#sections a")];
  const mark = () => {
    const line = innerHeight / 3;
    let current = links[0];
    for (const link of links) {
      const section = document.getElementById(link.hash.slice(1));
      if (section && section.getBoundingClientRect().top < line) current = link;
    }
    if (!current || current.hasAttribute("aria-current")) return;
    for (const link of links) link === current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    const list = document.getElementById("sections");
    list.scrollLeft = current.offsetLeft - list.clientWidth / 3;
  };
  addEventListener("scroll", mark, {passive: true});
  mark();
}

async function start() {
  document.title = escapeDirections(document.title);
  let tensors = [];
  let vocabulary = null;
  let problem = "";
  try {
    const data = await unpackJson("tensor-data");
    tensors = readTensors(data);
    joinComparison(tensors, data.differences);
    mapBytes = await unpack("map-data");
    vocabulary = await unpackJson("vocabulary-data");
  } catch (error) {
    problem = "This browser does not unpack the tensors and the vocabulary; one from 2023 or later does. " + error;
  }
  allTensors = tensors;
  addOverview(tensors);
  if (problem) document.getElementById("overview").append(make("p", {class: "findings"}, make("span", {class: "bad"}, problem)));
  addComparison(tensors);
  if (tensors.length) {
    addTreemap(tensors);
    addLayers(tensors);
    addGallery(tensors);
    addTensorTable(tensors);
  }
  addIdentity();
  addMemory();
  addVocabulary(vocabulary);
  addChat();
  addFindings();
  addDigests(tensors);
  document.getElementById("made").append(`Made by poise report, Poise ${model.poise}. This page holds everything that it shows and loads nothing.`);
  watchSections();
  document.documentElement.dataset.ready = "true";
}

start();
