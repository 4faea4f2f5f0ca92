"use strict";
// User data enters the page only through textContent and canvas pixels; the policy forbids every other way.

(function sortableTables() {
  function compare(a, b) {
    if (a.missing || b.missing) return a.missing - b.missing; // missing stays last in both directions
    return 0;
  }
  function keyOf(row, index, numeric) {
    const cell = row.cells[index];
    const value = cell ? cell.dataset.value : undefined;
    if (numeric) return { missing: value === undefined, value: Number(value) };
    const words = cell ? cell.textContent.trim() : "";
    return { missing: words === "" || words === "–", value: words };
  }
  function isNumeric(rows, index) {
    return rows.some((row) => row.cells[index] && row.cells[index].dataset.value !== undefined);
  }
  function sortBy(table, header) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const index = header.cellIndex;
    const numeric = isNumeric(rows, index);
    const was = header.getAttribute("aria-sort");
    // Numbers are asked for largest first, names from A to Z; the next click turns them round.
    const next = was === "none" ? (numeric ? "descending" : "ascending") : was === "ascending" ? "descending" : "ascending";
    const sign = next === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => ({ row, key: keyOf(row, index, numeric) }));
    keyed.sort((a, b) => compare(a.key, b.key) || sign * (numeric
      ? a.key.value - b.key.value
      : a.key.value.localeCompare(b.key.value, undefined, { numeric: true })) || 0);
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", next);
    body.append(...keyed.map((entry) => entry.row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const button of table.querySelectorAll("button.sort")) {
      button.addEventListener("click", () => sortBy(table, button.closest("th")));
    }
  }
})();

(function filterTopRows() {
  const input = document.getElementById("top-filter");
  if (!input) return;
  const rows = Array.from(document.getElementById("top-table").tBodies[0].rows);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  input.closest("p").hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = wanted !== "" && !texts[i].includes(wanted);
      shown += row.hidden ? 0 : 1;
    });
    document.getElementById("top-shown").textContent = wanted === "" ? "" : `${shown} of ${rows.length} rows`;
  });
})();

(function rowMap() {
  const source = document.getElementById("map-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const canvas = document.getElementById("map-canvas");
  const card = document.getElementById("map-card");
  const live = document.getElementById("map-live");
  const pen = canvas.getContext("2d");
  const n = data.x.length;
  const byProbability = Array.from({ length: n }, (_, i) => i).sort((a, b) => data.probability[b] - data.probability[a]);
  const view = { zoom: 1, x: 0.5, y: 0.5 };
  const shown = { labelled: true, unlabelled: true, least: 0 };
  const PAD = 16;
  let width = 0;
  let height = 0;
  let chosen = -1;
  let colours = null;
  let sheet = null;

  if (data.sheet) {
    sheet = new Image();
    sheet.src = data.sheet.uri;
  }

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const pick = (name) => style.getPropertyValue(name).trim();
    const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const stops = [pick("--low"), pick("--mid"), pick("--high")].map(channels);
    const ramp = Array.from({ length: 101 }, (_, i) => {
      const t = i / 50;
      const [from, to, part] = t <= 1 ? [stops[0], stops[1], t] : [stops[1], stops[2], t - 1];
      return `rgb(${from.map((c, j) => Math.round(c + (to[j] - c) * part)).join(",")})`;
    });
    colours = { ramp, labelled: pick("--labelled"), negative: pick("--negative"), surface: pick("--surface"), ink: pick("--ink") };
  }

  function visible(i) {
    if (data.labels[i] !== 0) return shown.labelled;
    return shown.unlabelled && data.probability[i] * 100 >= shown.least;
  }

  function place(i) {
    const x = (data.x[i] - view.x) * view.zoom + 0.5;
    const y = (1 - data.y[i] - view.y) * view.zoom + 0.5;
    return [PAD + x * (width - 2 * PAD), PAD + y * (height - 2 * PAD)];
  }

  function drawDot(i, radius) {
    const [x, y] = place(i);
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = colours.ramp[Math.max(0, Math.min(100, Math.round(data.probability[i] * 100)))];
    pen.fill();
  }

  function drawLabelled(i, size) {
    const [x, y] = place(i);
    pen.beginPath();
    if (data.labels[i] === 1) {
      pen.moveTo(x, y - size);
      pen.lineTo(x + size, y);
      pen.lineTo(x, y + size);
      pen.lineTo(x - size, y);
      pen.closePath();
    } else {
      pen.rect(x - size * 0.75, y - size * 0.75, size * 1.5, size * 1.5);
    }
    pen.fillStyle = data.labels[i] === 1 ? colours.labelled : colours.negative;
    pen.fill();
    pen.lineWidth = 1.2;
    pen.strokeStyle = colours.surface;
    pen.stroke();
  }

  function draw() {
    const radius = (n > 1500 ? 2.6 : n > 400 ? 3.3 : 4.2) * Math.min(1.8, Math.sqrt(view.zoom));
    pen.clearRect(0, 0, width, height);
    for (let k = n - 1; k >= 0; k--) {
      const i = byProbability[k]; // the likeliest are drawn last, on top
      if (data.labels[i] === 0 && visible(i)) drawDot(i, radius);
    }
    for (let i = 0; i < n; i++) if (data.labels[i] !== 0 && visible(i)) drawLabelled(i, radius + 2);
    if (chosen >= 0) {
      const [x, y] = place(chosen);
      pen.beginPath();
      pen.arc(x, y, radius + 5, 0, 2 * Math.PI);
      pen.lineWidth = 2;
      pen.strokeStyle = colours.ink;
      pen.stroke();
    }
  }

  function resize() {
    const box = canvas.getBoundingClientRect();
    const ratio = Math.max(1, Math.min(3, window.devicePixelRatio || 1));
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw();
    if (chosen >= 0) putCard();
  }

  function kind(i) {
    return data.labels[i] === 1 ? "labelled positive" : data.labels[i] === -1 ? "labelled negative" : "unlabelled";
  }

  function facts(i) {
    const percent = (data.probability[i] * 100).toFixed(1) + " %";
    const called = data.threshold !== null && data.probability[i] > data.threshold ? ", above the threshold" : "";
    return `${kind(i)}, ${percent}${called}`;
  }

  function add(parent, tag, words, cls) {
    const node = document.createElement(tag);
    node.textContent = words;
    node.dir = "auto";
    if (cls) node.className = cls;
    parent.append(node);
    return node;
  }

  function addImage(i) {
    const tile = data.thumbnails.length ? data.thumbnails[i] : -1;
    if (!sheet || tile < 0 || !sheet.complete || !sheet.naturalWidth) return;
    const { tile: size, columns } = data.sheet;
    const canvas = document.createElement("canvas");
    canvas.width = size;
    canvas.height = size;
    canvas.getContext("2d").drawImage(
      sheet, (tile % columns) * size, Math.floor(tile / columns) * size, size, size, 0, 0, size, size);
    card.append(canvas);
  }

  function fillCard(i) {
    card.replaceChildren();
    addImage(i);
    add(card, "div", data.names[i], "card-name");
    add(card, "div", facts(i), "card-fact");
    if (data.texts.length && data.texts[i]) add(card, "p", data.texts[i]);
    if (data.cells.length && data.columns.length) {
      const list = document.createElement("dl");
      data.columns.forEach((name, j) => {
        add(list, "dt", name);
        const value = data.cells[i][j];
        add(list, "dd", value === null ? "–" : typeof value === "number" ? String(Number(value.toPrecision(5))) : String(value));
      });
      card.append(list);
    }
  }

  function putCard() {
    const [x, y] = place(chosen);
    card.hidden = false;
    const left = x + 14 + card.offsetWidth > width ? x - 14 - card.offsetWidth : x + 14;
    const top = Math.min(y + 10, height - card.offsetHeight - 4);
    card.style.left = `${Math.max(2, Math.min(left, width - card.offsetWidth - 2))}px`;
    card.style.top = `${Math.max(2, top)}px`;
  }

  function choose(i, aloud) {
    if (i === chosen) return;
    chosen = i;
    if (i < 0) {
      card.hidden = true;
    } else {
      fillCard(i);
      putCard();
      if (aloud) live.textContent = `${data.names[i]}: ${facts(i)}`;
    }
    draw();
  }

  function nearest(clientX, clientY, reach) {
    const box = canvas.getBoundingClientRect();
    let best = -1;
    let least = reach * reach;
    for (let i = 0; i < n; i++) {
      if (!visible(i)) continue;
      const [x, y] = place(i);
      const distance = (x - clientX + box.left) ** 2 + (y - clientY + box.top) ** 2;
      if (distance < least || (distance === least && data.labels[i] !== 0)) [best, least] = [i, distance];
    }
    return best;
  }

  function zoomTo(zoom, atX = 0.5, atY = 0.5) {
    const next = Math.max(1, Math.min(24, zoom));
    const unitX = view.x + (atX - 0.5) / view.zoom;
    const unitY = view.y + (atY - 0.5) / view.zoom;
    view.zoom = next;
    moveTo(unitX - (atX - 0.5) / next, unitY - (atY - 0.5) / next);
  }

  function moveTo(x, y) {
    const half = 0.5 / view.zoom;
    view.x = Math.max(half, Math.min(1 - half, x));
    view.y = Math.max(half, Math.min(1 - half, y));
    draw();
    if (chosen >= 0) putCard();
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { x: event.clientX, y: event.clientY, viewX: view.x, viewY: view.y, moved: false };
    if (event.pointerType !== "mouse") choose(nearest(event.clientX, event.clientY, 28), true);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && view.zoom > 1 && event.buttons) {
      moveTo(drag.viewX - (event.clientX - drag.x) / (width - 2 * PAD) / view.zoom,
        drag.viewY - (event.clientY - drag.y) / (height - 2 * PAD) / view.zoom);
      return;
    }
    if (event.pointerType === "mouse") choose(nearest(event.clientX, event.clientY, 18), false);
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", (event) => {
    drag = null;
    if (event.pointerType === "mouse" && document.activeElement !== canvas) choose(-1, false);
  });
  canvas.addEventListener("dblclick", (event) => {
    const box = canvas.getBoundingClientRect();
    zoomTo(view.zoom * 2, (event.clientX - box.left) / width, (event.clientY - box.top) / height);
  });
  canvas.addEventListener("blur", () => choose(-1, false));
  canvas.addEventListener("keydown", (event) => {
    const order = byProbability.filter(visible);
    const at = order.indexOf(chosen);
    const targets = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: Math.max(0, at - 1), ArrowUp: Math.max(0, at - 1),
      PageDown: at + 25, PageUp: at - 25, Home: 0, End: order.length - 1,
    };
    if (event.key === "Escape") return choose(-1, false);
    if (event.key === "+" || event.key === "-") {
      const [x, y] = chosen >= 0 ? place(chosen) : [width / 2, height / 2];
      return zoomTo(view.zoom * (event.key === "+" ? 1.6 : 1 / 1.6), x / width, y / height);
    }
    if (!(event.key in targets) || !order.length) return undefined;
    event.preventDefault();
    const next = order[Math.max(0, Math.min(order.length - 1, targets[event.key]))];
    const [x, y] = place(next);
    if (x < 0 || y < 0 || x > width || y > height) moveTo(data.x[next], 1 - data.y[next]);
    return choose(next, true);
  });

  const tool = (id) => document.getElementById(id);
  function refresh() {
    shown.labelled = tool("map-labelled").checked;
    shown.unlabelled = tool("map-unlabelled").checked;
    shown.least = Number(tool("map-least").value);
    tool("map-least-out").textContent = `${shown.least} %`;
    if (chosen >= 0 && !visible(chosen)) choose(-1, false);
    draw();
  }
  for (const id of ["map-labelled", "map-unlabelled", "map-least"]) tool(id).addEventListener("input", refresh);
  tool("map-in").addEventListener("click", () => zoomTo(view.zoom * 1.6));
  tool("map-out").addEventListener("click", () => zoomTo(view.zoom / 1.6));
  tool("map-reset").addEventListener("click", () => zoomTo(1));
  document.querySelector(".map-tools").hidden = false;

  function repaint() {
    readColours();
    draw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  matchMedia("print").addEventListener("change", repaint);
  readColours();
  new ResizeObserver(resize).observe(canvas);
})();
