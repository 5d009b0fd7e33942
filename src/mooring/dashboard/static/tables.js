"use strict";
// Tables sort by their headings, and those with many rows can be filtered. What was chosen outlives an update.
(() => {
  const chosen = new Map();  // by table: which column, which way, which text
  const number = text => {
    const found = /^-?[\d,]*\.?\d+/.exec(text.trim());
    return found ? parseFloat(found[0].replaceAll(",", "")) : NaN;
  };
  const FEW = 12;

  function arrange(table, choice) {
    const body = table.tBodies[0];
    if (!body) return;
    if (choice.column !== undefined) {
      const rows = [...body.rows], text = row => row.cells[choice.column] ? row.cells[choice.column].textContent.trim() : "";
      const numeric = rows.every(row => text(row) === "-" || text(row) === "" || !Number.isNaN(number(text(row))));
      const order = (a, b) => {
        if (!numeric) return text(a).localeCompare(text(b), "en", {numeric: true});
        const [x, y] = [number(text(a)), number(text(b))];
        return (Number.isNaN(x) ? -Infinity : x) - (Number.isNaN(y) ? -Infinity : y);
      };
      rows.sort((a, b) => choice.down ? order(b, a) : order(a, b)).forEach(row => body.append(row));
      [...table.tHead.rows[0].cells].forEach((cell, at) => {
        if (at === choice.column) cell.setAttribute("aria-sort", choice.down ? "descending" : "ascending");
        else cell.removeAttribute("aria-sort");
      });
    }
    const wanted = (choice.text || "").toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    if (choice.says) choice.says.textContent = wanted ? `${shown} of ${body.rows.length} rows` : "";
  }

  function prepare(table, at) {
    if (table.dataset.sorts || !table.tHead || !table.tBodies[0]) return;
    table.dataset.sorts = "true";
    const name = `${location.pathname} ${table.id || at}`, choice = chosen.get(name) || {};
    chosen.set(name, choice);
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = document.createElement("button");
      button.type = "button"; button.className = "sort"; button.textContent = cell.textContent;
      button.addEventListener("click", () => {
        choice.down = choice.column === column ? !choice.down : false;
        choice.column = column;
        arrange(table, choice);
      });
      cell.replaceChildren(button);
    });
    if (table.tBodies[0].rows.length > FEW) {
      const label = document.createElement("label"), input = document.createElement("input"), says = document.createElement("output");
      label.className = "filter"; label.append("Filter rows ", input, " ", says);
      input.type = "search"; input.value = choice.text || ""; input.autocomplete = "off";
      input.addEventListener("input", () => { choice.text = input.value; arrange(table, choice); });
      choice.says = says;
      table.closest(".table").before(label);
      if (choice.isFocused) input.focus();
      input.addEventListener("focus", () => { choice.isFocused = true; });
      input.addEventListener("blur", () => { choice.isFocused = false; });
    }
    arrange(table, choice);
  }

  const all = () => document.querySelectorAll(".table table").forEach(prepare);
  document.addEventListener("htmx:afterSettle", all);
  document.addEventListener("mooring:moment", all);
  all();
})();
