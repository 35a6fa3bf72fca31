"use strict";
/* The live page: asks /v1/live every two seconds and draws what it says. Text is only ever set as text. */
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const EVERY_MS = 2000;
let key = sessionStorage.getItem("key") || "", held = false, last = null, timer = 0, open = null;

if (location.hash.startsWith("#key=")) {
  key = decodeURIComponent(location.hash.slice(5));
  sessionStorage.setItem("key", key);
  history.replaceState(null, "", location.pathname);
}

function el(name, more = {}, ...inside) {
  const made = document.createElement(name);
  for (const [k, v] of Object.entries(more)) made.setAttribute(k, v);
  made.append(...inside);
  return made;
}
function svg(name, more = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(more)) made.setAttribute(k, v);
  if (text !== undefined) made.textContent = text;
  return made;
}
function seconds(s) {
  if (s === null || s === undefined) return "";
  if (s < 0) return "now";
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 120) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
}
function ms(x) { return x < 1 ? `${Math.round(x * 1000)} µs` : x < 1000 ? `${x.toFixed(x < 10 ? 2 : 1)} ms` : seconds(x / 1000); }
function rows(table, all) {
  $(table).tBodies[0].replaceChildren(...all.map(cells =>
    el("tr", {}, ...cells.map(c => c instanceof Node ? el("td", {}, c) : el("td", {}, String(c))))));
}
function width(id) { return Math.max(280, $(id).clientWidth || 640); }
function hours(h) { return h < 0.01 ? seconds(h * 3600) : `${h.toFixed(2)} h`; }
async function ask(path) {
  const answer = await fetch(path, { headers: { "X-API-Key": key }, cache: "no-store", credentials: "omit" });
  if (answer.ok) return answer.json();
  const said = await answer.json().catch(() => ({ error: { message: `status ${answer.status}` } }));
  throw new Error(said.error.message);
}

function tiles(now) {
  const done = Object.values(now.tax?.rollouts || {}).reduce((a, b) => a + b, 0);
  const bad = done - (now.tax?.rollouts?.ok || 0);
  const spent = Object.values(now.tax?.spent_h || {}).reduce((a, b) => a + b, 0);
  const work = now.tax?.spent_h?.work || 0, gap = now.tax?.spent_h?.gap || 0;
  const got = now.pool?.acquired || {}, asked = Object.values(got).reduce((a, b) => a + b, 0);
  const all = [
    ["running", now.states.running || 0], ["paused", now.states.paused || 0], ["stopped", now.states.stopped || 0],
    ["rollouts", done], ["not ok", bad], ["actions", now.tax?.actions ?? ""],
    ["tax share", spent > gap ? `${(100 * (spent - work - gap) / (spent - gap)).toFixed(1)} %` : "–"],
    ["pool hits", asked ? `${(100 * (got.exact || 0) / asked).toFixed(0)} %` : "–"],
  ];
  $("tiles").replaceChildren(...all.map(([name, value]) => el("div", { class: "tile" }, el("b", {}, String(value)), el("span", {}, name))));
}

function bars(now) {
  const parts = now.tax?.parts || [], shown = parts.filter(p => p !== "gap");
  $("legend").replaceChildren(...shown.map(p => el("span", {}, el("i", { class: p }), p)));
  const W = width("bars"), H = 190, base = H - 22, all = now.rollouts;
  const drawn = svg("svg", { viewBox: `0 0 ${W} ${H}` });
  const total = r => r.parts_ms.reduce((sum, x, i) => parts[i] === "gap" ? sum : sum + x, 0);
  const most = Math.max(...all.map(total), 0.001), wide = (W - 60) / Math.max(all.length, 12);
  for (const share of [0, .5, 1]) {
    const y = base - share * (base - 12);
    drawn.append(svg("path", { class: "axis", d: `M52 ${y}H${W}` }), svg("text", { x: 0, y: y + 4 }, share ? ms(most * share) : "0"));
  }
  all.forEach((rollout, n) => {
    let y = base;
    const bar = svg("g", { tabindex: -1 });
    rollout.parts_ms.forEach((value, i) => {
      if (parts[i] === "gap" || !value) return;
      const high = value / most * (base - 12);
      y -= high;
      bar.append(svg("rect", { class: parts[i], x: 56 + n * wide, y, width: Math.max(1, wide - 2), height: high }));
    });
    if (rollout.outcome !== "ok") bar.append(svg("rect", { class: "failed", x: 56 + n * wide, y: base + 3, width: Math.max(1, wide - 2), height: 4 }));
    bar.append(svg("title", {}, `${rollout.id} ${rollout.outcome}, ${rollout.actions} actions, ${rollout.workload}\n` +
      parts.map((p, i) => `${p} ${ms(rollout.parts_ms[i])}`).join("\n")));
    drawn.append(bar);
  });
  if (!all.length) drawn.append(svg("text", { x: 60, y: 90 }, now.tax?.on === false ? "tax is not kept: serve without --no-tax" : "no rollout has ended yet"));
  else drawn.append(svg("text", { x: 56, y: H - 4 }, `the last ${all.length}; time between actions is left out`));
  $("bars").replaceChildren(drawn);
  const spent = now.tax?.spent_h, causes = now.tax?.causes_h;
  $("spent").textContent = spent ? "worker time so far: " + Object.entries(spent).map(([k, v]) => `${k} ${hours(v)}`).join(", ") +
    "; lost to " + Object.entries(causes).map(([k, v]) => `${k.replace("_", " ")} ${hours(v)}`).join(", ") : "";
}

function series(now) {
  const all = now.series || [], W = width("series"), H = 190, base = H - 22;
  const drawn = svg("svg", { viewBox: `0 0 ${W} ${H}` });
  if (all.length) {
    const most = Math.max(...all.map(x => x[3])), from = all[0][0], to = Math.max(now.now_s, from + 60);
    const x = t => 56 + (t - from) / (to - from) * (W - 64), y = v => base - v / most * (base - 12);
    for (const share of [0, .5, 1]) drawn.append(svg("path", { class: "axis", d: `M52 ${y(most * share)}H${W}` }), svg("text", { x: 0, y: y(most * share) + 4 }, share ? ms(most * share) : "0"));
    for (const [name, at] of [["p50", 2], ["p99", 3]]) {
      drawn.append(svg("path", { class: name, d: all.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[at]).toFixed(1)}`).join("") }));
      if (all.length < 40) drawn.append(...all.map(p => svg("circle", { class: name, cx: x(p[0]), cy: y(p[at]), r: 2 })));
    }
    const now_ = all[all.length - 1];
    drawn.append(svg("text", { x: 56, y: H - 4 }, `${seconds(to - from)}; now p50 ${ms(now_[2])}, p99 ${ms(now_[3])} of ${now_[1]} in 10 s`));
  } else drawn.append(svg("text", { x: 60, y: 90 }, "no action was answered yet"));
  $("series").replaceChildren(drawn);
}

function boxes(now) {
  const wanted = $("find").value.trim().toLowerCase(), focus = document.activeElement?.dataset?.id;
  const fits = s => !wanted || [s.id, s.owner, s.state, s.template, s.door].some(x => String(x).toLowerCase().includes(wanted));
  const made = now.sandboxes.filter(fits).reverse().map(s => {
    const row = el("tr", { tabindex: 0, "data-id": s.id });
    const cells = [el("code", {}, s.id), el("span", { class: s.state }, s.state), s.owner, s.door, s.template,
      seconds(s.age_s), s.actions, s.acting, s.acting ? "" : seconds(s.idle_s), seconds(s.ends_in_s)];
    row.append(...cells.map(c => el("td", {}, c instanceof Node ? c : String(c))));
    return row;
  });
  $("boxes").tBodies[0].replaceChildren(...made);
  if (focus) document.querySelector(`[data-id="${CSS.escape(focus)}"]`)?.focus();
}

function draw(now) {
  document.querySelector("main").hidden = false;
  $("what").className = now.draining ? "bad" : "";
  $("what").textContent = `${now.substrate} (${now.isolation}), version ${now.version}` + (now.draining ? ", draining" : "") + (now.watching ? "" : ", your own sandboxes");
  tiles(now); bars(now); series(now); boxes(now);
  rows("latency", Object.entries(now.latency_ms || {}).map(([name, [p50, p90, p99, n]]) => [name, ms(p50), ms(p90), ms(p99), n]));
  rows("failures", (now.failures || []).map(f => [f.kind, f.phase, f.count]));
  rows("pool", (now.pool?.stages || []).map(s => [s.kind, s.depth, s.copies, s.why]));
  $("pool-status").textContent = now.pool ? Object.entries(now.pool.status).map(([k, v]) => `${k} ${Math.round(v)}`).join(", ") +
    `; saved ${seconds(now.pool.saved_s)}, kept idle ${seconds(now.pool.kept_s)}` : "nothing is kept ready";
  for (const id of ["time", "latency", "pool", "failures"]) $(id).closest("section").hidden = !now.watching;
}

async function timeline() {
  if (!open) return;
  const asked = open;
  let one;
  try { one = await ask(`/v1/sandboxes/${encodeURIComponent(asked)}/timeline`); }
  catch (error) { if (open === asked) $("one-note").textContent = error.message; return; }
  if (open !== asked) return;
  $("one-h").textContent = `${one.id} (${one.state})`;
  $("one-note").textContent = `${one.template} through ${one.door}; created in ${ms(one.created_ms)}, ready after ${ms(one.ready_ms)}, ${one.actions} actions` +
    (one.acts.length < one.actions ? `, of which the last ${one.acts.length} are shown` : "");
  const W = width("timeline"), most = Math.max(one.now_ms, 1), line = 5, H = Math.max(60, one.acts.length * line + 40);
  const drawn = svg("svg", { viewBox: `0 0 ${W} ${H}` }), x = t => 10 + t / most * (W - 20);
  drawn.append(svg("rect", { class: "create", x: x(0), y: 4, width: Math.max(1, x(one.created_ms) - x(0)), height: 6 }),
    svg("rect", { class: "ready", x: x(one.created_ms), y: 4, width: Math.max(1, x(one.ready_ms) - x(one.created_ms)), height: 6 }));
  one.acts.forEach(([sent, got, inside, code], n) => {
    const y = 16 + n * line, spent = got - sent, work = inside === null ? spent : inside;
    const bar = svg("g");
    bar.append(svg("rect", { class: "dispatch", x: x(sent), y, width: Math.max(1.5, x(got) - x(sent)), height: line - 1 }),
      svg("rect", { class: code ? "failed" : "work", x: x(got - work), y, width: Math.max(1, x(got) - x(got - work)), height: line - 1 }),
      svg("title", {}, `${ms(spent)}, inside ${inside === null ? "unknown" : ms(inside)}, exit code ${code}`));
    drawn.append(bar);
  });
  drawn.append(svg("text", { x: 10, y: H - 6 }, "0"), svg("text", { x: W - 70, y: H - 6 }, seconds(most / 1000)));
  $("timeline").replaceChildren(drawn);
}
function show(id) { open = id; $("timeline").replaceChildren(); $("one-h").textContent = id; if (!$("one").open) $("one").showModal(); timeline(); }

async function look() {
  clearTimeout(timer);
  if (key && !held && !document.hidden) {
    try { last = await ask("/v1/live"); draw(last); await timeline(); }
    catch (error) { $("what").className = "bad"; $("what").textContent = error.message || "the service does not answer"; }
  }
  timer = setTimeout(look, EVERY_MS);
}

$("enter").addEventListener("submit", event => { event.preventDefault(); key = $("key").value.trim(); sessionStorage.setItem("key", key); $("key").value = ""; look(); });
function hold() { held = !held; $("hold").setAttribute("aria-pressed", held); if (!held) look(); }
$("hold").addEventListener("click", hold);
$("find").addEventListener("input", () => last && boxes(last));
$("close").addEventListener("click", () => $("one").close());
/* The event comes some time after the closing: whoever went on to another field by then keeps it, and what he types. */
$("one").addEventListener("close", () => {
  const id = open, at = document.activeElement;
  open = null;
  if (!at || at === document.body || $("one").contains(at)) document.querySelector(`[data-id="${CSS.escape(id || "")}"]`)?.focus();
});
$("boxes").addEventListener("click", event => { const row = event.target.closest("tr[data-id]"); if (row) show(row.dataset.id); });
document.addEventListener("visibilitychange", look);
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest?.("tr[data-id]");
  if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); show(row.dataset.id); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const all = [...document.querySelectorAll("tr[data-id]")];
    if (!all.length || event.target.tagName === "INPUT" || $("one").open) return;
    event.preventDefault();
    const at = all.indexOf(row), to = at < 0 ? 0 : at + (event.key === "ArrowDown" ? 1 : -1);
    all[Math.min(Math.max(to, 0), all.length - 1)].focus();
  } else if (event.target.tagName !== "INPUT" && event.key === "/") { event.preventDefault(); $("find").focus(); }
  else if (event.target.tagName !== "INPUT" && event.key === "p") hold();
});
look();
