// A second map over the first, cut off at a divider: left of it, another view of the same place.

const stage = document.getElementById("stage");
const divider = document.getElementById("divider");
const beforePlace = document.getElementById("before");
const beforeName = document.getElementById("before-name");

/** What can stand left of the divider: the imagery with one group, or with one raster. */
function sides(presets) {
  const pictures = told.rasters
    .filter((view) => view.group !== "imagery")
    .map((view) => [view.name, new Set([view.id])]);
  return [...presets.map(({ name, ids }) => [name, ids]), ...pictures];
}

function makeSwipe(map, presets) {
  const choices = sides(presets);
  beforeName.append(...choices.map(([name], at) => element("option", { value: at }, name)));
  const usual = choices.findIndex(([name]) => name === "OpenStreetMap");
  beforeName.value = String(Math.max(usual, 0));

  let before = null;
  let loaded = false;
  let on = false;
  let leading = null; // the map that is being moved, so that the other only follows

  const follow = (leader, follower) => () => {
    if (leading !== null && leading !== leader) return;
    leading = leader;
    follower.jumpTo({ center: leader.getCenter(), zoom: leader.getZoom() });
    leading = null;
  };

  function place(percent) {
    const at = Math.min(100, Math.max(0, percent));
    divider.style.left = `${at}%`;
    divider.setAttribute("aria-valuenow", String(Math.round(at)));
    beforePlace.style.clipPath = `inset(0 ${100 - at}% 0 0)`;
  }

  function redraw() {
    if (!loaded) return;
    draw(before, new Set([...imageryShown(), ...choices[Number(beforeName.value)][1]]));
  }

  function open() {
    before = makeMap(beforePlace, { center: map.getCenter(), zoom: map.getZoom() });
    beforePlace.style.visibility = "hidden"; // until there is something to see
    before.once("load", () => {
      loaded = true;
      redraw();
      before.once("idle", () => { beforePlace.style.visibility = ""; });
    });
    map.on("move", follow(map, before));
    before.on("move", follow(before, map));
    answerQuestions(before);
  }

  function toggle() {
    on = !on;
    for (const place of [beforePlace, divider, document.getElementById("before-choice")]) {
      place.hidden = !on;
    }
    document.getElementById("swipe").setAttribute("aria-pressed", String(on));
    closePopup();
    if (on && before === null) open();
    if (on) redraw();
  }

  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const box = stage.getBoundingClientRect();
    place(((event.clientX - box.left) / box.width) * 100);
  });
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2, Home: -100, End: 100 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    place(Number(divider.getAttribute("aria-valuenow")) + step);
  });
  beforeName.addEventListener("change", redraw);
  document.getElementById("swipe").addEventListener("click", toggle);
  place(50);
  return { toggle, redraw };
}
