"use strict";
// Filters of the scorecard, sortable tables, tables filled when they are opened, and the figure viewer.

const byId = (id) => document.getElementById(id);

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortRows(table.tBodies[0], column, descending);
    });
  });
}

function sortRows(body, column, descending) {
  const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  const rows = [...body.rows].map((row) => ({ row, text: key(row), number: Number(key(row)) }));
  // Empty cells go last in either direction; numbers before words.
  const compare = (a, b) => {
    if (!a.text || !b.text) return !a.text - !b.text;
    const words = Number.isNaN(a.number) - Number.isNaN(b.number);
    if (words) return words;
    const order = Number.isNaN(a.number) ? a.text.localeCompare(b.text, "en", { numeric: true }) : a.number - b.number;
    return descending ? -order : order;
  };
  body.append(...rows.sort(compare).map((entry) => entry.row));
}

async function unpacked(name) {
  const bytes = Uint8Array.from(atob(byId(name).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function showFigure(image) {
  const svg = await unpacked(image.dataset.source);
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
}

async function fillTable(details) {
  const box = details.querySelector(".box");
  if (box.firstChild) return;
  const table = document.createElement("table");
  box.append(table);
  const { columns, rows } = JSON.parse(await unpacked(details.dataset.source));
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value;
  }
  makeSortable(table);
}

function filterClaims() {
  const paper = byId("filter-paper").value;
  const data = byId("filter-data").value;
  const words = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = new Set([...document.querySelectorAll("#filter-verdict input:checked")].map((box) => box.value));
  const rows = [...byId("claims").tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits =
      (!paper || row.dataset.paper === paper) &&
      (!data || row.dataset.standIn === data) &&
      verdicts.has(row.dataset.verdict) &&
      words.every((word) => text.includes(word));
    row.hidden = !fits;
    shown += fits;
  }
  byId("filter-count").textContent = `${shown} of ${rows.length} rows shown`;
}

function enlarge(button) {
  const image = button.querySelector("img");
  const viewer = byId("viewer");
  const large = viewer.querySelector("img");
  large.src = image.src;
  large.alt = image.alt;
  large.classList.remove("full");
  viewer.querySelector("span").textContent = image.dataset.title;
  viewer.showModal();
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
if (typeof DecompressionStream === "undefined") byId("unpacked").hidden = false;
else document.querySelectorAll("img[data-source]").forEach(showFigure);
document.querySelectorAll("details.data").forEach((details) => {
  details.addEventListener("toggle", () => details.open && fillTable(details));
});
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
document.querySelectorAll(".filters input, .filters select").forEach((field) => {
  field.addEventListener("input", filterClaims);
});
document.querySelectorAll("figure button").forEach((button) => {
  button.addEventListener("click", () => enlarge(button));
});
byId("viewer").querySelector("button").addEventListener("click", () => byId("viewer").close());
byId("viewer").querySelector("img").addEventListener("click", (event) => event.target.classList.toggle("full"));
// A link opens what it leads to: what the target stands in, a study, or the details of a claim.
function openTarget() {
  const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let outer = target.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  const own = target.matches("tr") ? target.querySelector("details") : target.querySelector(":scope > details");
  if (own) own.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", openTarget);
openTarget();
filterClaims();
