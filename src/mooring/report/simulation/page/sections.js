"use strict";
// One function a section: how its data becomes charts.

function overTime(charts, data) {
  policyLegend(charts);
  data.panels.forEach((panel, number) => {
    const wide = number === 0 && data.panels.length % 2 === 1;
    const { title, label } = panel;
    chart(charts, { title, label, wide, height: wide ? 320 : 250 }, (now) => [
      panel.lines.flatMap((line) => policyTraces(now, data, panel, line)),
      {
        xaxis: timeAxis(now, data.unit, data.x[data.x.length - 1]),
        yaxis: axis(now, panel.axis, panel.is_share ? { range: [0, 103], dtick: 25 } : { rangemode: "tozero" }),
      },
    ]);
  });
}

function policyTraces(now, data, panel, line) {
  const colour = nth(now.policies, line.policy);
  const edge = { x: data.x, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
  const band = line.low.length
    ? [{ ...edge, y: line.low }, { ...edge, y: line.high, fill: "tonexty", fillcolor: faint(colour) }]
    : [];
  const value = panel.is_share
    ? `%{y:.1f}% (%{customdata[0]:,.4~g} of %{customdata[1]:,.4~g} ${plain(panel.unit)})`
    : `%{y:,.4~g} ${plain(panel.unit)}`;
  return [...band, {
    x: data.x, y: line.y, name: plain(POLICIES[line.policy]), mode: "lines",
    line: { color: colour, width: 2, dash: nth(DASHES, line.policy) },
    customdata: line.amount.map((amount, row) => [amount, line.capacity[row]]),
    hovertemplate: `${value}<extra>${plain(short(POLICIES[line.policy], 24))}</extra>`,
  }];
}

function shares(charts, data) {
  let resource = 0;
  const panels = [];
  choice(charts, "Share of", data.resources, (number) => {
    resource = number;
    panels.forEach((panel) => panel.draw());
  });
  legend(charts, data.queues.map((name, number) => ({ name, colour: queueColour(number) })));
  // All charts reach as high as the highest, or they could not be compared.
  const highest = () => {
    const totals = data.panels.flatMap((panel) =>
      data.x.map((_, moment) => panel.shares[resource].reduce((sum, of) => sum + (of[moment] || 0), 0)));
    return totals.reduce((most, total) => Math.max(most, total), 1);
  };
  data.panels.forEach((panel) => {
    const title = POLICIES[panel.policy];
    const wide = data.panels.length === 1;
    panels.push(chart(charts, { title, label: panel.label, wide, policy: panel.policy, height: 290 }, (now) => [
      panel.shares[resource].map((y, queue) => ({
        x: data.x, y, name: plain(data.queues[queue]), mode: "lines", stackgroup: "queues",
        line: { width: 0.5, color: now.card }, fillcolor: queueColour(queue)(now),
        hovertemplate: `%{y:.1f}%<extra>${plain(short(data.queues[queue], 24))}</extra>`,
      })),
      {
        xaxis: timeAxis(now, data.unit, data.x[data.x.length - 1]),
        yaxis: axis(now, `share of ${data.resources[resource]} (%)`, { range: [0, 1.03 * highest()] }),
      },
    ]));
  });
}

const queueColour = (number) => (now) => now.queues[Math.min(number, now.queues.length - 1)];

const DURATIONS = [
  [1, "1s"], [10, "10s"], [60, "1m"], [600, "10m"], [3600, "1h"], [6 * 3600, "6h"], [86400, "1d"],
  [7 * 86400, "7d"], [30 * 86400, "30d"], [365 * 86400, "1y"],
];

// As the command writes them: 5.2s, 2m05s, 2h01m, 2d07h.
function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h${two((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d${two((whole % 86400) / 3600)}h`;
}

// From the last tick before the shortest to a little more than the longest.
function durationAxis(now, title, times) {
  const reach = times.reduce((most, time) => Math.max(most, time), 10) * 1.15;
  const shortest = times.reduce((least, time) => Math.min(least, time), reach);
  const first = DURATIONS.reduce((found, [seconds]) => (seconds <= shortest ? seconds : found), 1);
  const shown = DURATIONS.filter(([seconds]) => seconds >= first && seconds <= reach);
  return axis(now, title, {
    type: "log", range: [Math.log10(first) - 0.03, Math.log10(reach)], minor: { ticks: "" },
    tickvals: shown.map(([seconds]) => seconds), ticktext: shown.map(([, text]) => text),
  });
}

function waiting(charts, data) {
  policyLegend(charts);
  data.distributions.forEach((found) => distribution(charts, found));
  let number = 0;
  const drawn = [];
  choice(charts, "Waiting time by", data.groups.map((found) => found.title), (chosen) => {
    number = chosen;
    drawn.forEach((panel) => panel.draw());
  });
  if (!data.groups.length) return;
  const title = data.groups.length > 1 ? "" : `Waiting time by ${data.groups[0].title}`;
  drawn.push(chart(charts, { title, label: data.groups.map((found) => found.label).join(" "), wide: true }, (now) =>
    quantileBars(now, data.groups[number])));
  element(charts, "p", { class: "note wide" },
    "Thin from the 5th to the 95th percentile, thick from the 25th to the 75th, the median as a dot.");
}

function distribution(charts, found) {
  const times = found.curves.flatMap((curve) => curve.seconds);
  const longest = times.reduce((most, time) => Math.max(most, time), 1);
  const { title, label } = found;
  chart(charts, { title, label, height: 300 }, (now) => [
    found.curves.filter((curve) => curve.seconds.length).map((curve) => ({
      // From nothing, up the steps, and on to the right end.
      x: [curve.seconds[0], ...curve.seconds, longest * 1.2],
      y: [0, ...curve.percent, curve.percent[curve.percent.length - 1]],
      text: [curve.seconds[0], ...curve.seconds, longest].map(duration),
      name: plain(POLICIES[curve.policy]), mode: "lines",
      line: { color: nth(now.policies, curve.policy), width: 2, dash: nth(DASHES, curve.policy), shape: "hv" },
      hovertemplate: `${plain(short(POLICIES[curve.policy], 40))}: %{y:.1f}% within %{text}<extra></extra>`,
    })),
    {
      hovermode: "closest",
      xaxis: durationAxis(now, "time since submission (logarithmic)", times),
      yaxis: axis(now, found.axis, { range: [0, 103], dtick: 25 }),
    },
  ]);
}

function quantileBars(now, group) {
  const step = 0.72 / POLICIES.length;
  const thick = Math.max(3, Math.min(11, 26 / POLICIES.length + 3));
  const times = group.boxes.flat().flatMap((box) => box.quantiles);
  const traces = group.boxes.flatMap((boxes, policy) => {
    const colour = nth(now.policies, policy);
    const rows = boxes.map((box, row) => ({ box, y: row + (policy - (POLICIES.length - 1) / 2) * step }))
      .filter(({ box }) => box.quantiles.length);
    const bar = (from, to, width) => ({
      x: rows.flatMap(({ box }) => [box.quantiles[from], box.quantiles[to], null]),
      y: rows.flatMap(({ y }) => [y, y, null]), mode: "lines", line: { color: colour, width }, hoverinfo: "skip",
    });
    const told = rows.map(({ box }) =>
      `median ${duration(box.quantiles[2])}, p95 ${duration(box.quantiles[4])}; ` +
      `${box.started.toLocaleString("en")} of ${box.jobs.toLocaleString("en")} jobs started`);
    return [bar(0, 4, 1.5), { ...bar(1, 3, thick), opacity: 0.75 }, {
      x: rows.map(({ box }) => box.quantiles[2]), y: rows.map(({ y }) => y), mode: "markers", text: told,
      marker: { color: now.card, size: Math.max(5, thick - 1), line: { color: colour, width: 2 } },
      name: plain(POLICIES[policy]), hovertemplate: `${plain(short(POLICIES[policy], 40))}: %{text}<extra></extra>`,
    }];
  });
  return [traces, {
    height: 80 + group.names.length * (18 + 14 * POLICIES.length), hovermode: "closest",
    xaxis: durationAxis(now, "waiting time (logarithmic)", times),
    yaxis: axis(now, "", {
      range: [group.names.length - 0.5, -0.5], showgrid: false,
      tickvals: group.names.map((_, row) => row), ticktext: group.names.map((name) => plain(short(name, 28))),
    }),
  }];
}

const DOWN = 255;

function cluster(charts, data) {
  let moment = Math.floor(data.x.length / 2);
  const cells = data.maps.map((found) => Uint8Array.from(atob(found.cells), (letter) => letter.charCodeAt(0)));
  const maps = [];
  slider(charts, data, moment, (chosen) => {
    moment = chosen;
    maps.forEach((panel) => panel.draw());
  });
  heatLegend(charts);
  data.maps.forEach((found, number) => {
    const title = POLICIES[found.policy];
    const wide = data.maps.length === 1;
    maps.push(chart(charts, { title, label: found.label, wide, policy: found.policy }, (now, width) => {
      const count = found.names.length;
      return map(now, found, cells[number].subarray(moment * count, (moment + 1) * count), width, wide ? 420 : 300);
    }));
  });
}

function slider(charts, data, moment, choose) {
  const row = element(charts, "div", { class: "slider wide" });
  const button = element(row, "button", { type: "button" }, "Play");
  const input = element(row, "input", {
    type: "range", id: "moment", min: 0, max: data.x.length - 1, step: 1, "aria-label": "Moment",
  });
  const output = element(row, "output", { for: "moment" });
  const show = (chosen) => {
    input.value = chosen;
    output.textContent = `${data.x[chosen].toFixed(1)} ${data.unit}`;
    input.setAttribute("aria-valuetext", output.textContent);
  };
  let playing = null;
  const stop = () => {
    clearInterval(playing);
    playing = null;
    button.textContent = "Play";
  };
  input.addEventListener("input", () => { stop(); show(+input.value); choose(+input.value); });
  button.addEventListener("click", () => {
    if (playing !== null) return stop();
    button.textContent = "Pause";
    playing = setInterval(() => {
      const next = (+input.value + 1) % data.x.length;
      show(next);
      choose(next);
    }, 250);
    return undefined;
  });
  show(moment);
}

function heatLegend(charts) {
  const list = element(charts, "ul", { class: "legend wide" });
  const item = element(list, "li", {}, "empty");
  const bar = element(item, "span", { class: "heat", "aria-hidden": "true" });
  item.append("full");
  const paint = () => { bar.style.background = `linear-gradient(to right, ${theme().heat.join(", ")})`; };
  redraws.push(paint);
  paint();
  const down = element(list, "li");
  swatch(down, (now) => now.down);
  down.append("down");
}

// Cells in rows, as large as there is room for; each GPU model begins a row of its own, under its name.
function map(now, found, bytes, width, height) {
  const size = Math.max(3, Math.min(34, Math.sqrt((width * height) / Math.max(1, bytes.length)) * 0.94));
  const columns = Math.max(1, Math.floor(width / size));
  const gap = Math.ceil(22 / size);
  const full = [], down = [], names = [], annotations = [];
  const addRow = () => [full, down, names].forEach((rows) => rows.push(new Array(columns).fill(null)));
  let cell = 0;
  for (const block of found.blocks) {
    for (let row = 0; row < gap; row += 1) addRow();
    annotations.push({
      text: `${plain(short(block.title, 40))}`, x: -0.5, y: full.length - 0.5, xanchor: "left", yanchor: "bottom",
      showarrow: false, font: { size: 11.5, color: now.quiet },
    });
    for (let within = 0; within < block.cells; within += 1, cell += 1) {
      if (within % columns === 0) addRow();
      const [row, column] = [full.length - 1, within % columns];
      names[row][column] = plain(found.names[cell]);
      if (bytes[cell] === DOWN) down[row][column] = 1;
      else full[row][column] = bytes[cell] / 2;
    }
  }
  const common = {
    type: "heatmap", customdata: names, showscale: false, hoverongaps: false, xgap: size > 6 ? 1.5 : 0,
    ygap: size > 6 ? 1.5 : 0,
  };
  const stops = now.heat.map((colour, number) => [number / (now.heat.length - 1), colour]);
  const hidden = { visible: false, fixedrange: true };
  return [[
    { ...common, z: full, zmin: 0, zmax: 100, colorscale: stops,
      hovertemplate: "%{customdata}: %{z:.0f}% allocated<extra></extra>" },
    { ...common, z: down, zmin: 0, zmax: 1, colorscale: [[0, now.down], [1, now.down]],
      hovertemplate: "%{customdata}: down<extra></extra>" },
  ], {
    height: Math.max(60, full.length * size + 6), margin: { l: 0, r: 0, t: 2, b: 4 }, hovermode: "closest",
    annotations, dragmode: false,
    xaxis: { ...hidden, range: [-0.5, columns - 0.5] }, yaxis: { ...hidden, range: [full.length - 0.5, -0.5] },
  }];
}

function gantt(charts, data) {
  let number = 0;
  const drawn = [];
  choice(charts, "Policy", data.timelines.map((found) => POLICIES[found.policy]), (chosen) => {
    number = chosen;
    drawn[0].plot.setAttribute("aria-label", data.timelines[chosen].label);
    drawn[0].draw();
  });
  const shown = data.queues.map((_, queue) => queue).filter((queue) => data.queue_of.includes(queue));
  legend(charts, [
    ...shown.map((queue) => ({ name: data.queues[queue], colour: queueColour(queue) })),
    { name: "waits", colour: (now) => now.wait },
    { name: "lost its node", colour: (now) => now.lost },
  ]);
  const { label } = data.timelines[0];
  drawn.push(chart(charts, { label, wide: true }, (now) => timeline(now, data, data.timelines[number])));
}

function timeline(now, data, found) {
  const told = data.jobs.map((job, row) =>
    `<b>${plain(short(job, 60))}</b><br>${plain(data.queues[data.queue_of[row]])}<br>${plain(found.told[row])}`);
  const bars = (pieces, wanted, width, colour) => {
    const chosen = pieces.row.map((row, index) => index).filter((index) => wanted(pieces.row[index]));
    return {
      type: "bar", orientation: "h", width, marker: { color: colour, line: { color: colour, width: 0.5 } },
      y: chosen.map((index) => pieces.row[index]), base: chosen.map((index) => pieces.x0[index]),
      x: chosen.map((index) => pieces.x1[index] - pieces.x0[index]),
      customdata: chosen.map((index) => [told[pieces.row[index]], pieces.x0[index], pieces.x1[index]]),
      hovertemplate: `%{customdata[0]}<br>%{customdata[1]:.4~g} to %{customdata[2]:.4~g} ${data.unit}<extra></extra>`,
    };
  };
  const each = data.jobs.length <= 40 ? 19 : 6;
  const named = data.jobs.length <= 40;
  return [[
    bars(found.waited, () => true, 0.22, now.wait),
    ...data.queues.map((_, queue) =>
      bars(found.ran, (row) => data.queue_of[row] === queue, 0.82, queueColour(queue)(now))),
    {
      x: found.lost_x, y: found.lost_row, mode: "markers", text: found.lost_row.map((row) => told[row]),
      marker: { symbol: "x-thin", size: 7, line: { color: now.lost, width: 1.8 } },
      hovertemplate: "%{text}<br>lost its node<extra></extra>",
    },
  ], {
    height: 70 + Math.max(4, data.jobs.length) * each, barmode: "overlay", hovermode: "closest",
    xaxis: timeAxis(now, data.unit, data.until),
    yaxis: axis(now, named ? "" : "jobs in the order of arrival", {
      range: [data.jobs.length - 0.5, -0.5], showgrid: false, showticklabels: named,
      tickvals: data.jobs.map((_, row) => row), ticktext: data.jobs.map((job) => plain(short(job, 26))),
    }),
  }];
}

const draw = { allocation: overTime, backlog: overTime, shares, waiting, cluster, gantt };
for (const [name, section] of Object.entries(draw)) {
  const found = document.getElementById(name);
  const data = JSON.parse(found.querySelector(".data").textContent);
  if (data !== null) section(found.querySelector(".charts"), data);
}
const redraw = () => redraws.forEach((again) => again());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  redraw();
});
document.documentElement.dataset.drawn = "true";
