"use strict";
// What sections are drawn with. Colours come from page.css, so that there is one place for light and dark.

const POLICIES = JSON.parse(document.getElementById("policies").textContent);
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const CONFIG = {
  responsive: true,
  displaylogo: false,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};
const redraws = [];

// What everything is drawn with.

function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const list = (name) => read(name).split(/\s+/);
  return {
    text: read("text"), quiet: read("quiet"), grid: read("grid"), card: read("card"), line: read("line"),
    down: read("down"), wait: read("wait"), lost: read("lost"),
    policies: list("policies"), queues: list("queues"), heat: list("heat"),
  };
}

const nth = (list, number) => list[number % list.length];
// Bands of many policies lie on top of each other.
const faint = (colour) => `${colour}${POLICIES.length > 2 ? "18" : "30"}`;
// Plotly takes some HTML and its own %{} in texts; names are to be shown as they are.
const plain = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%\{/g, "%\u200b{");
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function axis(now, title, more) {
  return {
    title: { text: title, standoff: 8, font: { size: 12, color: now.quiet } },
    gridcolor: now.grid, linecolor: now.line, zeroline: false, automargin: true,
    tickfont: { size: 11.5, color: now.quiet }, ...more,
  };
}

// The axis of all charts over time; labels say after how long.
function timeAxis(now, unit, until) {
  return axis(now, `time (${unit})`, {
    range: [0, until], unifiedhovertitle: { text: `after %{x:.4~g} ${unit}` },
    spikecolor: now.quiet, spikethickness: 1, spikedash: "dot",
  });
}

function layout(now, more) {
  const family = getComputedStyle(document.body).fontFamily;
  return {
    paper_bgcolor: now.card, plot_bgcolor: now.card,
    font: { family, size: 12, color: now.text },
    margin: { l: 56, r: 14, t: 10, b: 44 }, showlegend: false, hovermode: "x unified",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    hoverlabel: { bgcolor: now.card, bordercolor: now.line, font: { family, color: now.text, size: 12 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: now.quiet, activecolor: now.text },
    ...more,
  };
}

// Elements.

function element(parent, name, properties = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  made.textContent = text;
  parent.append(made);
  return made;
}

// A chart with a title above it. `make` gives traces and layout, and does so again when colours or sizes change.
function chart(charts, { title, label, wide, policy, height }, make) {
  const figure = element(charts, "figure", wide ? { class: "wide" } : {});
  if (title) {
    const caption = element(figure, "figcaption");
    if (policy !== undefined) swatch(caption, (now) => nth(now.policies, policy));
    caption.append(title);
  }
  const plot = element(figure, "div", { class: "plot", role: "img", "aria-label": label });
  const draw = () => {
    const now = theme();
    const [traces, wanted] = make(now, plot.clientWidth);
    Plotly.react(plot, traces, layout(now, { height: height || 280, ...wanted }), CONFIG);
  };
  redraws.push(draw);
  draw();
  return { draw, plot };
}

function swatch(parent, colour) {
  const made = element(parent, "span", { class: "swatch", "aria-hidden": "true" });
  const paint = () => { made.style.background = colour(theme()); };
  redraws.push(paint);
  paint();
}

function legend(charts, items) {
  const list = element(charts, "ul", { class: "legend wide" });
  for (const { name, colour, dash } of items) {
    const item = element(list, "li");
    if (dash === undefined) swatch(item, colour);
    else lineSample(item, colour, dash);
    item.append(name);
  }
}

const STROKES = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 5", longdashdot: "12 4 2 4" };

function lineSample(parent, colour, dash) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const at = { x1: 0, y1: 6, x2: 30, y2: 6, "stroke-width": 2.5, "stroke-dasharray": STROKES[dash] };
  for (const [key, value] of Object.entries(at)) line.setAttribute(key, value);
  for (const [key, value] of Object.entries({ width: 30, height: 12, "aria-hidden": "true" })) {
    made.setAttribute(key, value);
  }
  made.append(line);
  parent.append(made);
  const paint = () => line.setAttribute("stroke", colour(theme()));
  redraws.push(paint);
  paint();
}

function policyLegend(charts) {
  if (POLICIES.length < 2) return;
  const dashOf = (number) => nth(DASHES, number);
  legend(charts, POLICIES.map((name, number) =>
    ({ name, colour: (now) => nth(now.policies, number), dash: dashOf(number) })));
}

// One of several; nothing is shown if there is no choice.
function choice(charts, title, names, choose) {
  if (names.length < 2) return;
  const group = `choice-${redraws.length}`;
  const set = element(charts, "fieldset", { class: "choice wide" });
  element(set, "legend", {}, title);
  names.forEach((name, number) => {
    const label = element(set, "label");
    const input = element(label, "input", { type: "radio", name: group, value: number });
    input.checked = number === 0;
    input.addEventListener("change", () => choose(number));
    element(label, "span", {}, name);
  });
}
