// What is under a click, as a small table. Everything from data is put in as text.

const OSM = "https://www.openstreetmap.org";
const MOST = 4; // features in one pop-up

const UNITS = [["_m2", " (m²)"], ["_m", " (m)"], ["_px", " (px)"], ["_deg", " (°)"]];

function inWords(name) {
  const unit = UNITS.find(([suffix]) => name.endsWith(suffix));
  const stem = unit ? name.slice(0, -unit[0].length) + unit[1] : name;
  return stem.replaceAll("_", " ");
}

/** Names and values of a feature; a column of tags, which is JSON, is taken apart. */
function facts(properties) {
  return Object.entries(properties).flatMap(([name, value]) => {
    if (name !== "tags") return [[inWords(name), value]];
    try {
      const tags = JSON.parse(value);
      if (tags !== null && typeof tags === "object") return Object.entries(tags);
    } catch {
      // Not JSON: shown as it is.
    }
    return [[name, value]];
  });
}

function link(address, words) {
  return element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, words);
}

function links(properties, at) {
  const ids = String(properties.osm_id ?? "").split(";");
  const objects = ids.filter((id) => /^(node|way|relation)\/\d+$/.test(id)).slice(0, MOST);
  const here = `${OSM}/edit#map=19/${at.lat.toFixed(6)}/${at.lng.toFixed(6)}`;
  return element(
    "p", { className: "links" },
    ...objects.map((id) => link(`${OSM}/${id}`, id)), link(here, "Edit here"),
  );
}

function card(view, feature, at) {
  const mark = element("i", { className: "swatch full" });
  mark.style.setProperty("--colour", view.style.colour);
  const rows = facts(feature.properties).map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, String(value))),
  );
  return element(
    "article", {},
    element("h2", {}, mark, view.name, element("small", {}, new Map(GROUPS).get(view.group))), element("table", {}, ...rows),
    links(feature.properties, at),
  );
}

/** The features under a point, the uppermost first, each once and whole (a map's tiles cut them). */
function found(map, point) {
  const box = [[point.x - 4, point.y - 4], [point.x + 4, point.y + 4]];
  const layers = LAYERS.filter((layer) => layer.type !== "raster").map((layer) => layer.id);
  const hits = new Map();
  for (const hit of map.queryRenderedFeatures(box, { layers })) {
    const view = told.vectors.find((one) => one.id === hit.source);
    hits.set(`${hit.source}/${hit.id}`, [view, view.features.features[hit.id]]);
  }
  return [...hits.values()];
}

let popup = null;

function closePopup() {
  popup?.remove();
  popup = null;
}

function pick(map, point) {
  closePopup();
  const hits = found(map, point);
  if (hits.length === 0) return;
  const at = map.unproject(point);
  const cards = hits.slice(0, MOST).map(([view, feature]) => card(view, feature, at));
  if (hits.length > MOST) {
    cards.push(element("p", { className: "hint" }, `and ${hits.length - MOST} more here`));
  }
  const [[, first]] = hits;
  map.getSource("picked").setData(first);
  popup = new maplibregl.Popup({ maxWidth: "320px", className: "facts" })
    .setLngLat(at)
    .setDOMContent(element("div", {}, ...cards))
    .addTo(map);
  popup.on("close", () => {
    map.getSource("picked").setData({ type: "FeatureCollection", features: [] });
  });
}

/** Click, or Enter in the middle of a map that has the keyboard. */
function answerQuestions(map) {
  map.on("click", (event) => pick(map, event.point));
  map.on("mousemove", (event) => {
    map.getCanvas().style.cursor = found(map, event.point).length > 0 ? "pointer" : "";
  });
  map.getCanvas().addEventListener("keydown", (event) => {
    if (event.key === "Enter") pick(map, map.project(map.getCenter()));
  });
}
