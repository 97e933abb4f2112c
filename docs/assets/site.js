// SPDX-License-Identifier: Apache-2.0
// Tables of claims: a click on a heading sorts by its column; a text and a verdict filter the rows. Without scripts
// they are plain tables. And code and tables that scroll can be reached by keyboard.
"use strict";

const named = (name, field) => {
  const label = document.createElement("label");
  label.append(`${name} `, field);
  return label;
};

const sortable = (table, rows) => {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    const button = document.createElement("button");
    button.textContent = title.textContent;
    title.replaceChildren(button);
    button.addEventListener("click", () => {
      const order = title.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const text = (row) => row.cells[column].textContent;
      rows.sort((a, b) => order * text(a).localeCompare(text(b), "en", { numeric: true }));
      table.tBodies[0].append(...rows);
      titles.forEach((other) => other.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
    });
  });
  return titles.findIndex((title) => title.textContent === "verdict");
};

const filtered = (table, rows, verdict) => {
  const search = Object.assign(document.createElement("input"), { type: "search" });
  const choice = document.createElement("select");
  const count = document.createElement("output");
  const verdicts = new Set(rows.map((row) => row.cells[verdict].textContent));
  for (const name of ["", ...[...verdicts].sort()]) choice.add(new Option(name || "all", name));
  const show = () => {
    const wanted = search.value.toLowerCase();
    for (const row of rows) {
      const fits = !choice.value || row.cells[verdict].textContent === choice.value;
      row.hidden = !fits || !row.textContent.toLowerCase().includes(wanted);
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
  };
  const form = document.createElement("form");
  form.className = "claims-filter";
  form.append(named("Filter", search), named("Verdict", choice), count);
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
  return form;
};

for (const table of document.querySelectorAll(".claims table")) {
  const rows = [...table.tBodies[0].rows];
  const form = filtered(table, rows, sortable(table, rows));
  table.closest(".claims").before(form);
}

addEventListener("load", () => {
  for (const wide of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .claims")) wide.tabIndex = 0;
});

// The search names a result by its title alone, though the result shows more: its whole text is the better name.
// The path of a result and their number have too little contrast.
const mended = new WeakSet();
document.addEventListener("input", ({ target: { shadowRoot } }) => {
  if (!shadowRoot || mended.has(shadowRoot)) return;
  mended.add(shadowRoot);
  const style = document.createElement("style");
  style.textContent = "[role=option] menu, [role=status] { color: inherit; }";
  shadowRoot.append(style);
  const rename = () => {
    for (const result of shadowRoot.querySelectorAll("[role=option][aria-labelledby]"))
      result.removeAttribute("aria-labelledby");
  };
  new MutationObserver(rename).observe(shadowRoot, { childList: true, subtree: true, attributes: true });
});
