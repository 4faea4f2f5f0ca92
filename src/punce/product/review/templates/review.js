"use strict";
// One card at a time. A verdict is shown as given only after the server has it on disk.
(() => {
  const find = (id) => document.getElementById(id);
  const KEYS = { y: "yes", n: "no", u: "unsure", ArrowUp: "yes", ArrowDown: "no" };
  const MOVES = { b: -1, ArrowLeft: -1, ArrowRight: 1 };
  let session = "", cards = [], at = 0, shown = "", busy = false, imageUrl = "";

  const problem = (text) => { find("problem").hidden = !text; find("problem").textContent = text; };

  async function ask(path, body) {
    const options = { headers: { "X-Punce-Session": session } };
    if (body) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const answer = await fetch(path, options).catch(() => null);
    if (!answer) throw new Error("The server has stopped. Nothing is lost: start punce review --serve again and open its new link.");
    if (!answer.ok) throw new Error((await answer.json()).error);
    return answer;
  }

  const element = (tag, text, cls) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (cls) made.className = cls;
    return made;
  };

  function showState(state) {
    cards = state.cards;
    const done = cards.filter((card) => card.verdict).length;
    find("count").textContent = `${done} of ${cards.length} judged`;
    find("progress").max = Math.max(1, cards.length);
    find("progress").value = done;
    find("goal").textContent = state.goal;
    find("numbers").replaceChildren(...state.numbers.map(numberRow));
  }

  function numberRow(number) {
    const row = element("tr"), bar = element("td", undefined, "bar"), track = element("div", undefined, "track");
    row.append(element("th", number.name));
    if (number.value !== null) {
      const span = element("div", undefined, "span");
      span.style.left = `${100 * number.low}%`;
      span.style.width = `${100 * (number.high - number.low)}%`;
      track.append(span);
      bar.append(track);
    }
    const percent = (value) => (100 * value).toFixed(1);
    const text = number.value === null ? "not yet" : `${percent(number.value)} % (${percent(number.low)}–${percent(number.high)})`;
    row.append(bar, element("td", text, "value"));
    return row;
  }

  // A card that cannot be shown leaves none: a verdict must be on the row that a person sees.
  async function showCard() {
    shown = "";
    try { await fillCard(); } catch (error) { find("card").replaceChildren(); throw error; }
  }

  async function fillCard() {
    const card = find("card");
    const isEnd = at >= cards.length;
    find("keys").hidden = false;
    for (const button of document.querySelectorAll("button")) button.hidden = isEnd && button.dataset.move !== "-1";
    if (isEnd) {
      card.replaceChildren(...lastWords());
      card.focus();
      return;
    }
    const row = await (await ask(`/row?key=${encodeURIComponent(cards[at].key)}`)).json();
    const said = element("span", cards[at].verdict, `said ${cards[at].verdict}`);
    const parts = [said, element("h1", row.name)];
    if (row.image) parts.push(await imageOf(row.key, row.name).catch((error) => element("p", error.message, "problem")));
    if (row.text !== null) parts.push(element("p", row.text));
    if (row.columns) parts.push(listOf(row.columns));
    if (row.probability !== undefined) parts.push(element("p", `classifier: ${row.probability.toFixed(3)}`, "quiet"));
    card.replaceChildren(...parts);
    shown = row.key;
    card.scrollTop = 0;
    card.focus();
  }

  function lastWords() {
    const open = cards.filter((card) => !card.verdict).length;
    const said = open ? `No more rows; ${open} of ${cards.length} are not judged yet.` : "All rows are judged.";
    const where = open ? "Reload the page to see the first of them. " : "";
    return [element("h1", said), element("p", `${where}End the server with Ctrl-C; it then says what the verdicts show. b goes back.`)];
  }

  async function imageOf(key, name) {
    const image = element("img");
    image.alt = name;
    if (imageUrl) URL.revokeObjectURL(imageUrl);
    const answer = await ask(`/image?key=${encodeURIComponent(key)}`);
    imageUrl = URL.createObjectURL(await answer.blob());
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 150));
    image.src = imageUrl;
    return image;
  }

  function listOf(columns) {
    const list = element("dl");
    // Two side by side, where all are short: one long list would not fit into the card, and half of it would be empty.
    const isShort = columns.every(([name, value]) => name.length <= 26 && String(value).length <= 16);
    if (columns.length > 12 && isShort) list.className = "pairs";
    for (const [name, value] of columns) list.append(element("dt", name), element("dd", value === null ? "–" : String(value)));
    return list;
  }

  const isLong = () => find("card").scrollHeight > find("card").clientHeight;

  // One thing at a time: a key that is held down must not judge rows that nobody saw.
  async function once(work) {
    if (busy) return;
    busy = true;
    try { await work(); problem(""); } catch (error) { problem(error.message); } finally { busy = false; }
    find("desk").setAttribute("aria-busy", "false");
  }

  const judge = (verdict) => once(async () => {
    if (at >= cards.length) return;
    if (shown) {
      showState(await (await ask("/verdict", { key: shown, verdict })).json());
      at += 1;
    }
    await showCard();
  });

  const move = (by) => once(async () => {
    at = Math.min(cards.length, Math.max(0, at + by));
    await showCard();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (KEYS[key] && key.length > 1 && isLong()) return;  // who scrolls through a long text must not judge it
    if (KEYS[key]) judge(KEYS[key]); else if (MOVES[key]) move(MOVES[key]); else return;
    event.preventDefault();
  });
  for (const button of document.querySelectorAll("button")) {
    button.addEventListener("click", () => (button.dataset.verdict ? judge(button.dataset.verdict) : move(Number(button.dataset.move))));
  }

  // A new link opened in this tab differs after # only, for which a browser does not load the page again.
  window.addEventListener("hashchange", () => location.reload());

  once(async () => {
    const token = location.hash.slice(1);
    session = sessionStorage.getItem("punce") || "";
    if (token) {
      history.replaceState(null, "", "/");  // the token is used up: nobody should copy it
      session = (await (await ask("/session", { token })).json()).session;
      sessionStorage.setItem("punce", session);
    }
    showState(await (await ask("/state")).json());
    at = cards.findIndex((card) => !card.verdict);
    if (at < 0) at = cards.length;
    await showCard();
  });
})();
