// The panel and the page: switches, sliders, figures, keys.

const $ = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");

/** Ready-made choices of what is seen; imagery stays as it is switched. */
const presets = groups
  .map(([group, name]) => ({
    name,
    ids: new Set(told.vectors.filter((view) => view.group === group).map((view) => view.id)),
  }))
  .filter(({ ids }) => ids.size > 0)
  .concat({ name: "Imagery", ids: new Set() });

// -- the panel ------------------------------------------------------------------------------

/** A little piece of map with the view's line, area or picture on it. */
function swatch(view) {
  const made = element("i", { className: "swatch" });
  if ("image" in view) {
    made.classList.add("picture");
    return made;
  }
  const shape = view.features.features[0]?.geometry.type ?? "Polygon";
  made.classList.add(shape.endsWith("LineString") ? "line" : "area");
  made.classList.toggle("dashed", view.style.dashed);
  made.classList.toggle("hollow", !view.style.filled);
  made.style.setProperty("--colour", view.style.colour);
  return made;
}

function row(view, changed) {
  const box = element("input", { type: "checkbox", id: `switch-${view.id}` });
  box.addEventListener("change", () => {
    state.shown[box.checked ? "add" : "delete"](view.id);
    changed();
  });
  const label = element("label", {}, box, swatch(view), element("span", {}, view.name));
  if ("total" in view) label.append(element("small", {}, count(view.total)));
  return label;
}

/** What the colours of labels or scores mean. */
function legend(views) {
  const classes = new Map(views.flatMap((view) => view.classes));
  const marks = [...classes].map(([name, colour]) => {
    const ramp = views[0].kind === "scores";
    const mark = element("i", { className: `swatch ${ramp ? "ramp" : "full"}` });
    mark.style.setProperty("--colour", colour);
    return element("span", {}, mark, ramp ? `${name} 0–1` : name);
  });
  if (views[0].kind === "labels") {
    marks.push(element("span", {}, element("i", { className: "swatch hatched" }), "unknown"));
  }
  return element("p", { className: "legend" }, ...marks);
}

function groupPanel([key, name], changed) {
  const slider = element("input", {
    type: "range", min: "0", max: "1", step: "0.05", value: "1", title: "Opacity",
  });
  slider.setAttribute("aria-label", `Opacity of ${name}`);
  slider.addEventListener("input", () => {
    state.opacity.set(key, Number(slider.value));
    changed();
  });
  const views = VIEWS.filter((view) => view.group === key);
  const coloured = views.filter((view) => view.classes?.length > 0);
  const rows = views.map((view) => row(view, changed));
  if (coloured.length > 0) rows.push(legend(coloured));
  const parts = element("details", { id: `group-${key}` }, element("summary", {}, name), ...rows);
  return element("div", { className: "group" }, slider, parts);
}

function figures(table) {
  const head = table.columns.map((name) => element("th", { scope: "col" }, name));
  const rows = table.rows.map(([first, ...others]) =>
    element(
      "tr", {}, element("th", { scope: "row" }, first),
      ...others.map((words) => element("td", {}, words)),
    ),
  );
  const grid = element(
    "table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows),
  );
  const made = element(
    "details", { open: true }, element("summary", {}, table.title),
    element("div", { className: "wide", tabIndex: 0 }, grid),
  );
  if (table.note) made.append(element("p", { className: "hint" }, table.note));
  return made;
}

function confidence(changed) {
  const scores = told.vectors
    .filter((view) => view.group === "map")
    .flatMap((view) => view.features.features.map((feature) => feature.properties.score))
    .filter((score) => typeof score === "number");
  if (scores.length === 0) return;
  const say = () => {
    $("score-now").textContent = state.score.toFixed(2);
    const left = scores.filter((score) => score >= state.score).length;
    $("score-left").textContent = `${count(left)} of ${count(scores.length)} features of the map`;
  };
  $("confidence").hidden = false;
  $("score").addEventListener("input", () => {
    state.score = Number($("score").value);
    say();
    changed();
  });
  say();
}

function presetButtons(changed) {
  const buttons = presets.map(({ name, ids }, at) => {
    const button = element("button", { type: "button", title: `Key ${at + 1}` }, name);
    button.addEventListener("click", () => {
      state.shown = new Set([...imageryShown(), ...ids]);
      for (const [key] of groups) $(`group-${key}`).open = false;
      closePopup();
      changed();
    });
    return button;
  });
  $("presets").append(...buttons);
  return buttons;
}

// -- the page -------------------------------------------------------------------------------

/** Bring switches and buttons in line with the state; groups that are seen are unfolded. */
function reflect(buttons) {
  const shown = VIEWS.filter((view) => state.shown.has(view.id));
  for (const view of VIEWS) $(`switch-${view.id}`).checked = shown.includes(view);
  for (const { group } of shown) $(`group-${group}`).open = true;
  const seen = shown.filter((view) => view.group !== "imagery").map((view) => view.id);
  presets.forEach(({ ids }, at) => {
    const same = ids.size === seen.length && seen.every((id) => ids.has(id));
    buttons[at].setAttribute("aria-pressed", String(same));
  });
}

function drawer(map) {
  $("drawer").addEventListener("click", () => {
    const open = document.body.classList.toggle("open");
    $("drawer").setAttribute("aria-expanded", String(open));
    map.resize();
  });
}

function keys(actions) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("select, input[type=range]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    actions[event.key.toLowerCase()]?.();
  });
}

function open() {
  const fit = { padding: 24, animate: false };
  const map = makeMap($("map"), { bounds: told.bounds, fitBoundsOptions: fit, hash: "at" });
  map.addControl(new maplibregl.NavigationControl({ showCompass: false }), "top-right");
  map.addControl(new maplibregl.ScaleControl({ maxWidth: 120 }), "bottom-right");
  const swipe = makeSwipe(map, presets);
  let buttons = [];
  let loaded = false;
  const changed = () => {
    reflect(buttons);
    delete document.documentElement.dataset.ready;
    if (loaded) draw(map, state.shown);
    swipe.redraw();
  };
  buttons = presetButtons(changed);
  $("layers").append(...groups.map((group) => groupPanel(group, changed)));
  $("figures").append(...told.tables.map(figures));
  confidence(changed);
  reflect(buttons);
  drawer(map);
  answerQuestions(map);
  keys({
    ...Object.fromEntries(buttons.map((button, at) => [String(at + 1), () => button.click()])),
    0: () => map.fitBounds(told.bounds, fit),
    s: swipe.toggle,
    escape: closePopup,
  });
  map.once("load", () => {
    loaded = true;
    draw(map, state.shown);
    // For whoever waits until all that was asked for is drawn.
    map.on("idle", () => { document.documentElement.dataset.ready = "yes"; });
  });
}

const mapped = told.vectors.filter((view) => view.group === "map");
$("counts").textContent = mapped.map((view) => `${count(view.total)} ${view.name.toLowerCase()}`).join(" · ");
$("note").textContent = told.note;
$("note").hidden = told.note === "";
try {
  open();
} catch (problem) {
  trouble(`This map needs WebGL, which this browser did not give it (${problem.message}).`);
}
