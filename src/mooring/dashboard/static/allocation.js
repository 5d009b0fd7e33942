"use strict";
// The chart on the overview: the part of each resource that is requested, over time.
(() => {
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let plot = null, names = "";
  async function draw() {
    const box = document.getElementById("allocation");
    if (!box || typeof uPlot === "undefined") return;
    const answer = await fetch("/data/allocation.json");
    if (!answer.ok) return;
    const found = await answer.json(), shown = Object.keys(found.percents);
    const data = [found.times, ...shown.map(name => found.percents[name])];
    if (plot && plot.root.isConnected && names === shown.join()) { plot.setData(data); box.dataset.points = found.times.length; return; }
    names = shown.join();
    if (plot) plot.destroy();
    const lines = colour("--policies").split(/\s+/).filter(Boolean), axis = {stroke: colour("--text"), grid: {stroke: colour("--grid")}};
    plot = new uPlot({
      width: Math.max(260, box.clientWidth), height: 220, scales: {y: {range: [0, 100]}},
      axes: [axis, {...axis, values: (_, ticks) => ticks.map(tick => `${tick} %`)}],
      series: [{}, ...shown.map((name, at) => ({label: name, stroke: lines[at % lines.length] || colour("--accent"), width: 2, value: (_, value) => value === null ? "-" : `${value} %`}))],
    }, data, box);
    box.dataset.points = found.times.length;
  }
  document.addEventListener("htmx:afterSettle", draw);
  addEventListener("resize", () => { const box = document.getElementById("allocation"); if (plot && box) plot.setSize({width: Math.max(260, box.clientWidth), height: 220}); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { names = ""; draw(); });
  draw();
})();
