"use strict";
// Draws the map of nodes on a canvas: one square a node, in groups, coloured by how full it is.
(() => {
  let data = null, places = [], size = 14;
  const heat = () => getComputedStyle(document.documentElement).getPropertyValue("--heat").trim().split(/\s+/);
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const parts = () => {
    const box = document.getElementById("node-map"), form = document.getElementById("map-settings");
    return {box, canvas: box && box.querySelector("canvas"), form, says: document.getElementById("map-node")};
  };

  function draw() {
    const {box, canvas, form} = parts();
    if (!canvas || !data) return;
    const values = data.allocated[form.elements.resource.value] || [], group = data[form.elements.group.value];
    const groups = new Map();
    data.names.forEach((_, at) => {
      const name = group[at] || "(none)";
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(at);
    });
    size = data.names.length > 4000 ? 8 : data.names.length > 800 ? 11 : 16;
    const width = Math.max(280, box.clientWidth), columns = Math.floor(width / size), title = 22, scale = devicePixelRatio || 1;
    let height = 0;
    for (const members of groups.values()) height += title + Math.ceil(members.length / columns) * size + 8;
    canvas.width = width * scale; canvas.height = height * scale;
    canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d"), shades = heat(), line = colour("--lost");
    pen.scale(scale, scale);
    pen.font = "13px system-ui, sans-serif";
    places = [];
    let top = 0;
    for (const [name, members] of [...groups].sort((a, b) => a[0] < b[0] ? -1 : 1)) {
      pen.fillStyle = colour("--text");
      pen.fillText(`${name} (${members.length})`, 0, top + 14);
      top += title;
      members.forEach((at, position) => {
        const x = (position % columns) * size, y = top + Math.floor(position / columns) * size, value = values[at];
        pen.fillStyle = value === null || value === undefined ? colour("--grid") : shades[Math.min(shades.length - 1, Math.floor(value / 100 * (shades.length - 0.001)))];
        pen.fillRect(x, y, size - 1, size - 1);
        if (data.states[at] !== "ready") {
          pen.strokeStyle = line;
          pen.beginPath();
          pen.moveTo(x, y + size - 1); pen.lineTo(x + size - 1, y);
          if (data.states[at] === "not ready") { pen.moveTo(x, y); pen.lineTo(x + size - 1, y + size - 1); }
          pen.stroke();
        }
        places.push([x, y, at]);
      });
      top += Math.ceil(members.length / columns) * size + 8;
    }
    box.dataset.drawn = data.names.length;
  }

  function nodeAt(event) {
    const box = event.target.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const found = places.find(place => x >= place[0] && x < place[0] + size && y >= place[1] && y < place[1] + size);
    return found === undefined ? null : found[2];
  }

  async function load() {
    const {box} = parts();
    if (!box) return;
    const answer = await fetch("/data/nodes.json");
    if (!answer.ok) return;
    data = await answer.json();
    draw();
  }

  document.addEventListener("change", event => { if (event.target.closest("#map-settings")) draw(); });
  document.addEventListener("mousemove", event => {
    if (!event.target.closest("#node-map canvas") || !data) return;
    const at = nodeAt(event), {form, says} = parts();
    if (at === null) return;
    const resource = form.elements.resource.value, value = data.allocated[resource][at];
    says.textContent = `${data.names[at]}: ${data.states[at]}, ${data.pods[at]} pods, ${value === null ? "no" : `${value} % of`} ${resource}`;
  });
  document.addEventListener("click", event => {
    if (!event.target.closest("#node-map canvas") || !data) return;
    const at = nodeAt(event);
    if (at !== null) location.assign(`/nodes/${encodeURIComponent(data.names[at])}`);
  });
  document.addEventListener("htmx:afterSettle", load);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  load();
})();
