// The page works without this: it makes answers follow their controls, draws the plots, takes
// dropped files, and copies commands.
"use strict";

const form = document.querySelector("form[data-live]");
const answer = document.querySelector("#answer");
let file = null; // what was dropped or chosen: it lives here and is sent with each question
let asking = null;
const HEADER = 48 * 2 ** 20; // of a model's file its header alone is sent
const LONGEST_ADDRESS = 16000;
const LONGEST_HASH = 120000;

// --- asking -------------------------------------------------------------------------------------

function filled() {
  const data = new FormData(form);
  data.delete("file");
  if (form.hasAttribute("data-columns")) return data; // there the place of a value says whose it is
  for (const [key, value] of [...data]) if (value === "") data.delete(key);
  if (data.get("engine") === "vllm") data.delete("engine");
  return data;
}

function address(data) {
  return new URLSearchParams([...data].filter(([, value]) => typeof value === "string")).toString();
}

function body(data) {
  if (file) {
    data.append("file", file.slice(0, HEADER), file.name);
    data.append("file_size", String(file.size));
  }
  return data;
}

function mustPost(data) {
  return file !== null || form.method === "post" || address(data).length > LONGEST_ADDRESS;
}

// What is pasted is too long for an address that a server reads; the part behind # stays here.
async function packed(data) {
  const text = JSON.stringify([...data].filter(([, value]) => typeof value === "string"));
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = btoa(bytes.reduce((all, byte) => all + String.fromCharCode(byte), ""));
  return `#q=${found.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

async function unpacked(hash) {
  const text = atob(hash.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(text, (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new URLSearchParams(JSON.parse(await new Response(stream).text()));
}

async function asked() {
  if (!location.hash.startsWith("#q=")) return new URLSearchParams(location.search);
  try { return await unpacked(location.hash); } catch { return new URLSearchParams(); }
}

async function place(data, query, post) {
  if (!post) return query ? `?${query}` : location.pathname;
  const hash = file || !query ? "" : await packed(data);
  return location.pathname + (hash.length < LONGEST_HASH ? hash : "");
}

async function ask(how) {
  const data = filled();
  const query = address(data);
  const post = mustPost(data);
  asking?.abort();
  asking = new AbortController();
  answer.setAttribute("aria-busy", "true");
  const target = form.getAttribute("action");
  try {
    const response = post
      ? await fetch(`${target}?part=answer`, { method: "POST", body: body(data), signal: asking.signal })
      : await fetch(`${target}?${query ? query + "&" : ""}part=answer`, { signal: asking.signal });
    const kind = response.headers.get("content-type") || "";
    const text = kind.startsWith("text/html") ? await response.text() : refused(await response.json());
    show(text);
    if (how !== "back") {
      const there = await place(data, query, post);
      history[how === "change" ? "pushState" : "replaceState"](null, "", there);
    }
  } catch (error) {
    if (error.name !== "AbortError") show(refused({ error: { message: "The server does not answer.", hint: "Is kvplan ui still running?" } }));
  }
}

function refused(found) {
  const box = document.createElement("div");
  box.className = "verdict bad";
  box.setAttribute("role", "alert");
  const said = document.createElement("p");
  said.className = "said";
  said.textContent = `${found.error.message} ${found.error.hint}`;
  box.append(said);
  return box.outerHTML;
}

function show(text) {
  const open = [...answer.querySelectorAll("details")].map((one) => one.open);
  const heights = [...answer.querySelectorAll(".canvas")].map((one) => [one.closest("figure").dataset.chart, one]);
  const fresh = document.createElement("template");
  fresh.innerHTML = text;
  // The old plots stay until the new ones are drawn, so that nothing jumps.
  for (const [name, old] of heights) {
    const place = fresh.content.querySelector(`figure[data-chart="${CSS.escape(name)}"] .canvas`);
    if (place) place.replaceWith(old);
  }
  drawing?.abort();
  answer.replaceChildren(fresh.content);
  answer.querySelectorAll("details").forEach((one, place) => { one.open = open[place] ?? one.open; });
  answer.setAttribute("aria-busy", "false");
  // Of a new answer its first sentence is read out, and not all of it.
  document.querySelector("#said").textContent = answer.querySelector(".verdict h2, .verdict .said")?.textContent ?? "";
  ready();
}

// --- plots --------------------------------------------------------------------------------------

let vega = null;
let drawing = null;

function script() {
  vega ??= new Promise((done, failed) => {
    const tag = document.createElement("script");
    tag.src = "/static/vega.js";
    tag.onload = () => done(window.vegaEmbed);
    tag.onerror = failed;
    document.head.append(tag);
  });
  return vega;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const text = of("--text"), quiet = of("--muted"), line = of("--line"), font = style.fontFamily;
  return {
    background: "transparent",
    font,
    view: { stroke: line },
    title: { color: text, anchor: "start", fontSize: 13, fontWeight: 600 },
    axis: { labelColor: quiet, titleColor: quiet, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 400, labelFontSize: 11.5, titleFontSize: 12 },
    legend: { labelColor: text, titleColor: quiet, labelFontSize: 11.5, rowPadding: 3 },
    text: { color: text },
  };
}

async function specifications(path, data, signal) {
  const response = mustPost(data)
    ? await fetch(path, { method: "POST", body: body(data), signal })
    : await fetch(`${path}?${address(data)}`, { signal });
  return response.status === 200 ? response.json() : {};
}

function fitted(spec, width, bare) {
  const compact = width < 480;
  const walk = (part) => {
    if (!part || typeof part !== "object") return;
    if (compact && part.axis && part.axis.labelLimit) part.axis = { ...part.axis, labelLimit: 90 };
    if (compact && part.legend && part.legend.columns > 1) part.legend = { ...part.legend, columns: 2, labelLimit: 105 };
    Object.values(part).forEach(walk);
  };
  walk(spec);
  if (bare) delete spec.title;
  if (spec.vconcat) {
    for (const panel of spec.vconcat) panel.width = width - 75;
    return spec;
  }
  spec.width = "container";
  spec.autosize = { type: "fit-x", contains: "padding" };
  return spec;
}

async function draw() {
  const figures = [...answer.querySelectorAll("figure[data-chart]")];
  drawing?.abort();
  drawing = new AbortController();
  const { signal } = drawing;
  try {
    const plots = answer.querySelector(".plots");
    const [embed, found] = figures.length
      ? await Promise.all([script(), specifications(plots.dataset.charts, filled(), signal)]) : [];
    if (signal.aborted) return;
    await Promise.all(figures.map(async (figure) => {
      const spec = found[figure.dataset.chart];
      figure.hidden = !spec;
      if (!spec) return;
      const canvas = figure.querySelector(".canvas");
      const options = { actions: false, ast: true, renderer: "svg", config: colours(), defaultStyle: false, tooltip: { disableDefaultStyle: true } };
      await embed(canvas, fitted(spec, canvas.clientWidth, figure.querySelector("figcaption") !== null), options);
      canvas.classList.add("drawn");
    }));
    if (!signal.aborted) answer.dataset.drawn = "true";
  } catch (error) {
    if (error.name !== "AbortError") console.error(error);
  }
}

// --- what an answer holds -------------------------------------------------------------------------

let resting = 0;

function ready(wait = 150) {
  for (const button of document.querySelectorAll("button.copy")) button.hidden = false;
  delete answer.dataset.drawn;
  // While controls change quickly the figures follow, and the plots when they rest.
  clearTimeout(resting);
  resting = setTimeout(draw, wait);
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("button.copy");
  if (copy) {
    const code = copy.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      copy.textContent = "Ctrl-C copies";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    return;
  }
  const link = event.target.closest("#answer a[href^='?']");
  if (link && form && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    fill(new URLSearchParams(link.getAttribute("href").slice(1)));
    await ask("change");
    answer.focus({ preventScroll: true });
    answer.scrollIntoView({ block: "start" });
  }
});

function fill(parameters) {
  for (const control of form.elements) {
    if (!control.name || control.type === "file") continue;
    const values = parameters.getAll(control.name);
    const same = [...form.elements].filter((one) => one.name === control.name);
    const value = values[same.indexOf(control)] ?? "";
    if (control.tagName === "SELECT" && value === "") control.selectedIndex = [...control.options].findIndex((one) => one.defaultSelected || one.text === "vllm");
    else control.value = value;
  }
}

// --- the form -----------------------------------------------------------------------------------

if (form) {
  let timer = 0;
  const later = (how, wait) => { clearTimeout(timer); timer = setTimeout(() => ask(how), wait); };
  form.addEventListener("input", (event) => {
    if (event.target.type === "file") return;
    later("typing", event.target.tagName === "SELECT" ? 0 : 120);
  });
  form.addEventListener("change", (event) => {
    if (event.target.type === "file") { take(event.target.files[0]); return; }
    later("change", 0);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); later("change", 0); });
  addEventListener("popstate", async () => { fill(await asked()); ask("back"); });
  if (location.hash.startsWith("#q=")) asked().then((found) => { fill(found); ask("back"); });
  if (form.hasAttribute("data-drop")) {
    for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
    addEventListener("dragover", () => document.body.classList.add("over"));
    for (const kind of ["dragleave", "drop"]) addEventListener(kind, () => document.body.classList.remove("over"));
    addEventListener("drop", (event) => take(event.dataTransfer?.files[0]));
  }
}

function take(found) {
  file = found ?? null;
  const chosen = form.querySelector("[name=model]");
  if (file && chosen && /\.(gguf|json)$/.test(file.name)) chosen.value = "";
  ask("change");
}

// --- light and dark -----------------------------------------------------------------------------

const theme = document.querySelector("button.theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page alone */ }
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
if (answer) ready(0);
