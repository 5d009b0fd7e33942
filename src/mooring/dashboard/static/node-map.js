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
    const pen = canvas.getContext("2d"), shades = heat(), line = colour("--lost"), none = colour("--grid");
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
        pen.fillStyle = value === null || value === undefined ? none : shades[Math.min(shades.length - 1, Math.floor(value / 100 * (shades.length - 0.001)))];
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
    if (chosen >= 0 && chosen < places.length && document.activeElement === canvas) {
      pen.strokeStyle = colour("--text"); pen.lineWidth = 2;
      pen.strokeRect(places[chosen][0], places[chosen][1], size - 1, size - 1);
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
    const answer = await fetch(box.dataset.at ? `/data/nodes.json?at=${box.dataset.at}` : "/data/nodes.json");
    if (!answer.ok) return;
    data = await answer.json();
    draw();
  }

  // What changed since the map that is drawn; all of it where that is too long ago.
  let isUpdating = false, isOutdated = false;
  async function update() {
    const {box} = parts();
    if (!box || !data) return;
    if (isUpdating) { isOutdated = true; return; }
    isUpdating = true;
    try {
      const answer = await fetch(`/data/nodes.json?since=${data.number}`);
      if (!answer.ok) return;
      const found = await answer.json();
      if (!found.changed) { data = found; } else {
        const {rows, allocated} = found.changed;
        rows.forEach((row, at) => {
          for (const name of ["states", "pods", "pools", "zones", "racks"]) data[name][row] = found.changed[name][at];
          for (const resource of Object.keys(allocated)) data.allocated[resource][row] = allocated[resource][at];
        });
        data.number = found.number;
      }
      draw();
      box.dataset.number = data.number;
    } finally {
      isUpdating = false;
      if (isOutdated) { isOutdated = false; update(); }
    }
  }

  let chosen = -1;
  function say(at) {
    const {form, says} = parts(), resource = form.elements.resource.value, value = data.allocated[resource][at];
    says.textContent = `${data.names[at]}: ${data.states[at]}, ${data.pods[at]} pods, ${value === null ? "no" : `${value} % of`} ${resource}`;
  }
  document.addEventListener("keydown", event => {
    const canvas = event.target.closest && event.target.closest("#node-map canvas");
    if (!canvas || !data || !places.length) return;
    const columns = Math.max(1, Math.floor(canvas.clientWidth / size));
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns};
    if (event.key === "Enter" && chosen >= 0) location.assign(`/nodes/${encodeURIComponent(data.names[places[chosen][2]])}`);
    if (!(event.key in steps)) return;
    event.preventDefault();
    chosen = Math.min(places.length - 1, Math.max(0, chosen < 0 ? 0 : chosen + steps[event.key]));
    draw();
    say(places[chosen][2]);
  });

  document.addEventListener("change", event => { if (event.target.closest("#map-settings")) draw(); });
  document.addEventListener("mousemove", event => {
    if (!event.target.closest("#node-map canvas") || !data) return;
    const at = nodeAt(event);
    if (at !== null) say(at);
  });
  document.addEventListener("click", event => {
    if (!event.target.closest("#node-map canvas") || !data) return;
    const at = nodeAt(event);
    if (at !== null) location.assign(`/nodes/${encodeURIComponent(data.names[at])}`);
  });
  document.addEventListener("mooring:moment", load);
  if (parts().box && parts().box.dataset.live) new EventSource("/events").addEventListener("map", update);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  load();
})();
